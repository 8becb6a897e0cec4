"""How many jobs run, in the sidebar of every page."""

import streamlit as st

from core.errors import AtlasError
from core.jobs import api
from pages.parts.shell import links, resources
from pages.parts.shell.messages import clear_errors, counted


def running_indicator() -> None:
    """ "2 jobs running" in the sidebar of every page, with the way to the Jobs page; nothing when none runs."""
    try:
        count = api.running_count(resources.database())
    except AtlasError:
        return  # pages that need the database say what is wrong with it, once
    if count:
        st.fragment(_indicator, run_every=3.0)()


def _indicator() -> None:
    with clear_errors():
        count = api.running_count(resources.database())
        if not count:
            st.rerun()
        label = f"{counted(count, 'jobs')} running"
        links.link("results/jobs", label, icon=":material/progress_activity:")
