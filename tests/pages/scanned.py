"""What Streamlit asks of every installed package, whether it brings a component, is asked once in a process.

Each new AppTest and each server parses the metadata of all 240 distributions for it: 0.3 CPU seconds, more than
most views take to run.
"""

from functools import cache

from streamlit.components.v2 import manifest_scanner


def scan_once() -> None:
    """From now on, also in forks of this process."""
    if not hasattr(manifest_scanner.scan_component_manifests, "cache_info"):
        manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)
    manifest_scanner.scan_component_manifests()
