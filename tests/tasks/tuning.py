"""The task of who fine-tunes."""

from tests.capture.conftest import tiny
from tests.pages.browsing import PATIENCE, settled, visit
from tests.tasks.hands import Hands


def tuned_change(hands: Hands) -> None:
    """By somebody whose own small checkpoint is the context, so that it takes seconds."""
    page, folder = hands.page, hands.folder / "tiny"
    base = tiny("bert")
    base.model.save_pretrained(folder)
    base.tokenizer.save_pretrained(folder)
    visit(page, f"{hands.address}/?checkpoint={folder}")
    hands.go("Fine-tuning")
    hands.click(page.get_by_text("Fine-tune a checkpoint").first)
    hands.click(page.get_by_role("button", name="Fine-tune", exact=True))
    page.get_by_role("button", name="Show how attention changed").wait_for(timeout=8 * PATIENCE)
    settled(page)
    hands.click(page.get_by_role("button", name="Show how attention changed"))
    page.get_by_text("Details", exact=True).wait_for(timeout=4 * PATIENCE)
