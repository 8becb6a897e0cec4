// What the page, the file or the notebook around the scripts has. No browser reads this file: `make scripts` does.

declare const STYLE: string, COLOURS: { light: string; dark: string }; // of a notebook: core/notebook/showing.py

declare function vegaEmbed(place: string | Element, spec: object, options?: object): Promise<unknown>;

interface Window { atlasFolds?: () => void }
