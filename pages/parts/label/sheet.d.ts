// What the scripts of the labelling sheet share, each field said once. No browser reads this file: `make scripts` does.

interface LabelClass { name: string; title: string; eye: string; key: string; colour: string }

/** What is suggested for a map: a class, its probability, what the codebook measures, and a prediction set where no class is likely. */
type Hint = [name: string, probability: number, why: string, among: string[]];

interface LabelMap {
  id: string; layer: number; head: number; length: number; maximum: number; separators: number[]; task: string;
  checkpoint: string; tokens: string[];
  offset: number; // of its weights in those of the payload
  hint: Hint | null;
  small: boolean; // too small to have a pattern
  group?: number; // alike maps, in the order of clusters
  pass?: number; // of a project: which time the person sees it
  said?: string[]; // of an adjudication: what others gave
}

/** What label_sheet.py and a project's door pack before the weights. */
interface QueueHeader {
  id: string; database: string; class_set: string; annotator: string; pass: number; order: string; mode: string; scale: string;
  per_sheet: number; maps: LabelMap[]; classes: LabelClass[]; counts: Record<string, number>; stack: LabelStep[];
  classifier: string | null;
  given?: Record<string, string | null>; // what is older than the stack reaches
  done?: number; total?: number;
  project?: string;
  word?: string;
}

/** A label, skip, flag or note of the stack; `event` is its batch and sequence, `group` what one undo takes back. */
interface LabelStep { event: string; kind: string; map_id: string; class?: string | null; pass?: number; group?: string | null }

/** What is sent and stored of one act. */
interface LabelEvent {
  sequence: number; class_set: string; map_id: string; annotator: string; pass: number; project: string | null;
  seconds: number; scale: string; way: string; queue_order: string; suggestion: string | null; probability: number | null;
  classifier: string | null; happened: string; kind: string; class?: string | null; undoes?: string; note?: string;
}

/** Events of one tab; `key` where they are a list in the storage, as before each had a key of its own. */
interface Outbox { batch: string; events: LabelEvent[]; key?: string }

/** What is sent: to one database, by who knows the secret; `drop` gives up what the store refuses. */
interface SentBoxes { boxes: (Outbox & { database: string })[]; secret: string; drop?: boolean }

interface SheetLayout {
  columns: number; tile: number; left: number; pitch: number; count: number; height: number; width: number; room: number; margin?: number;
}

interface SheetParts {
  word: HTMLElement; classes: HTMLElement; acts: HTMLElement; bar: HTMLElement; box: HTMLElement; canvas: HTMLCanvasElement;
  about: HTMLElement; why: HTMLElement; status: HTMLElement; progress: HTMLProgressElement;
}

interface Sheet {
  // the window
  root: HTMLElement;
  parts: SheetParts;
  theme: any; // of map_drawing.js
  pen: any;
  look: string; // the theme's colours that it was painted with
  layout: SheetLayout;
  stop: () => void;
  stopped?: boolean;

  // the queue
  header: QueueHeader;
  weights: Uint16Array;
  index: Map<string, number>; // places of maps by id
  cursor: number; // the place of the chosen map
  seen: Set<string>; // maps that were on the screen
  wanted: string; // the queue that is asked for
  first: string; // the queue that the page named
  fetched?: string; // one that came by a door since
  fetching?: boolean;

  // what is decided
  memory: { decided: Map<string, LabelStep>; undone: Set<string> };
  groups: Map<string, string>; // of an event: what one undo takes back
  stack: LabelStep[];
  steps: Map<string, LabelStep[]>; // labels and skips by map
  counts: Record<string, number>; // of each class
  before: number; // decided maps of this choice that are not in the queue
  marks: Set<string>; // flagged maps
  last: number; // when the last act was, of performance.now()
  given?: string; // the last class
  spans: { first: number; count: number }[]; // the group of each map
  out: Set<string>; // unmarked maps
  holding?: string | null; // the time of events that are sent together
  group: string | null; // of the acts that one undo takes back, now

  // how it is used
  likes: Record<string, any>;
  scale: string;
  mode: string;
  brush: string | null;
  stroke: string | null;
  touched: Set<number>; // places under the stroke
  noting?: boolean;

  // the outbox
  database: string | null;
  batch: string;
  sequence: number;
  outbox: LabelEvent[];
  parked: Map<string, { batch: string; sequence: number; outbox: LabelEvent[] }>; // outboxes of other databases
  left: Outbox[]; // of other tabs
  older: Outbox[]; // of before outboxes named their database
  adopted: Outbox[];
  saved: number;
  unsent?: SentBoxes | null;
  sending?: boolean;
  asking?: boolean; // for more maps, once nothing is on its way
  ask: (when: number) => void; // the page for them

  // what the server says
  refused?: string;
  storeRefuses?: boolean; // whatever is sent, now
  word?: string;
  verdicts: Map<string, boolean>;
  told?: string;
  toldOf?: { canvas: HTMLCanvasElement; name: string } | null;
}

interface Window {
  atlasLabels?: Uint8Array;
  atlasLabelMemories?: Map<string, Sheet["memory"]>;
  atlasHeld?: Map<string, LabelEvent>;
  atlasAsks?: boolean;
  atlasSecret?: string;
}
