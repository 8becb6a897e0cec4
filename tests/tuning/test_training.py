import pytest
import torch
from transformers import get_linear_schedule_with_warmup

from core.errors import InputError, TrainingStoppedError
from core.tasks.glue import TASKS, TaskRow
from core.tuning.batches import encode
from core.tuning.model import initialised
from core.tuning.recipe import Recipe
from core.tuning.training import Fit, learning_rate, optimizer_of
from tests.capture.conftest import tiny
from tests.tuning.conftest import rows

RECIPE = Recipe(learning_rate=3e-3, batch=8, epochs=3)


def fit(base, initialisation="pretrained", recipe=RECIPE, task="sst2", data=None, **options):
    data = data or rows(48)
    model = initialised(base, TASKS[task], initialisation, recipe, 0)
    train, dev = encode(base, data, 64), encode(base, data[:16], 64)
    return Fit(base, TASKS[task], model, train, dev, recipe, 0, **options)


@pytest.mark.thorough
def test_learns_the_word(base):
    before = fit(base, "untrained").run()
    outcome = fit(base, recipe=Recipe(learning_rate=3e-3, batch=8, epochs=6)).run()
    assert outcome.metrics["accuracy"] > max(0.9, before.metrics["accuracy"] + 0.2)
    assert not outcome.model.training
    assert len(outcome.log.losses) == outcome.log.steps == 36
    assert [one["epoch"] for one in outcome.log.epochs] == list(range(7))
    assert sum(outcome.log.losses[-6:]) < 0.6 * sum(outcome.log.losses[:6])


@pytest.mark.thorough
def test_a_run_can_be_repeated_and_leaves_the_callers_chance_alone(base):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, other = fit(base).run(), fit(base).run()
    assert torch.equal(torch.rand(1), expected)
    assert one.log.losses == other.log.losses


@pytest.mark.parametrize("stop_at", [4, *(pytest.param(step, marks=pytest.mark.slow) for step in (6, 11))])
def test_a_cancelled_run_goes_on_as_if_nothing_had_happened(base, tmp_path, stop_at):
    whole = fit(base).run()
    state = tmp_path / "state"
    steps = iter(range(100))
    with pytest.raises(TrainingStoppedError, match=f"after step {stop_at} of 18"):
        fit(base, state=state, identity="a", should_stop=lambda: next(steps) == stop_at).run()
    again = fit(base, state=state, identity="a")
    outcome = again.run()
    assert outcome.log.losses == whole.log.losses
    assert outcome.log.epochs == whole.log.epochs
    for a, b in zip(outcome.model.state_dict().values(), whole.model.state_dict().values(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.thorough
def test_a_state_of_another_run_or_cut_short_is_not_taken_up(tmp_path):
    base, state = tiny("bert"), tmp_path / "state"
    steps = iter(range(100))
    with pytest.raises(TrainingStoppedError):
        fit(base, state=state, identity="a", should_stop=lambda: next(steps) == 8).run()
    seen = []
    fit(base, state=state, identity="b", on_step=lambda log: seen.append(log.step)).run()
    assert seen[:2] == [0, 1]
    state.write_bytes(state.read_bytes()[:100])
    assert len(fit(base, state=state, identity="b").run().log.losses) == 18


def test_frozen_and_untrained_leave_the_transformer_alone(base):
    for initialisation in ("frozen", "untrained"):
        outcome = fit(base, initialisation).run()
        inner = dict(outcome.model.base_model.named_parameters())
        assert all(torch.equal(inner[name], value) for name, value in base.model.named_parameters() if name in inner)
    assert outcome.log.losses == []
    assert outcome.log.epochs[0]["epoch"] == 0


def test_only_last_layer_changes():
    base = tiny("bert")
    recipe = Recipe(learning_rate=3e-3, batch=8, epochs=1, train_last=1)
    source, found = base.model.state_dict(), fit(base, recipe=recipe).run().model.base_model.state_dict()
    changed = {name.split(".")[2] for name in source if "layer." in name and not torch.equal(source[name], found[name])}
    assert changed == {"2"}


def test_schedule_is_transformers_own():
    recipe, steps = Recipe(warm_up=0.1), 40
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    schedule = get_linear_schedule_with_warmup(optimizer, 4, steps)
    theirs = []
    for _ in range(steps):
        theirs.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    ours = [learning_rate(recipe, step, steps) for step in range(steps)]
    assert ours[:3] == pytest.approx(theirs[1:4])  # ours starts at 1/warm-up, theirs at 0: no step is wasted
    assert ours[4:] == pytest.approx(theirs[4:])
    assert learning_rate(Recipe(warm_up=0.0, decay="none"), 39, 40) == 1.0


def test_no_decay_on_biases_and_norms():
    model = initialised(tiny("bert"), TASKS["sst2"], "pretrained", RECIPE, 0)
    decayed, free = optimizer_of(model, RECIPE).param_groups
    assert (decayed["weight_decay"], free["weight_decay"]) == (0.01, 0.0)
    assert {id(p) for p in free["params"]} == {
        id(p) for name, p in model.named_parameters() if name.endswith("bias") or "LayerNorm" in name
    }


def test_constant_predictions_are_said_and_correlations_undefined():
    base = tiny("bert")
    data = [TaskRow(f"train-{k}", "the old dog", "a dog", float(k % 6)) for k in range(12)]
    outcome = fit(base, "untrained", task="stsb", data=data).run()
    assert outcome.constant
    assert outcome.metrics["pearson"] is None


def test_the_best_epoch_can_be_kept():
    base = tiny("bert")
    recipe = Recipe(learning_rate=5e-2, batch=8, epochs=4, keep="best", decay="none")
    outcome = fit(base, recipe=recipe).run()
    best = max(one["accuracy"] for one in outcome.log.epochs[1:])
    assert outcome.metrics["accuracy"] == best
    assert outcome.log.epochs[outcome.log.best]["accuracy"] == best


def test_the_untrained_epoch_is_never_the_best():
    """Steps so small that no epoch predicts anything else: of equal epochs the first that was trained is kept."""
    outcome = fit(tiny("bert"), recipe=Recipe(learning_rate=1e-9, batch=8, epochs=2, keep="best")).run()
    assert len({one["accuracy"] for one in outcome.log.epochs}) == 1
    assert outcome.log.best == 1


def test_bucketed_and_padded_batches_have_the_same_loss(base):
    """The same rows in the same batch: padding to 64 changes no loss."""
    plain, padded = (Recipe(batch=48, epochs=1, dropout=0.0, pad_to=width) for width in (0, 64))
    assert fit(base, recipe=plain).run().log.losses[0] == pytest.approx(
        fit(base, recipe=padded).run().log.losses[0], abs=1e-5
    )


@pytest.mark.thorough
def test_bfloat16_learns_the_same_and_is_refused_where_it_would_be_emulated(base, monkeypatch):
    half = Recipe(learning_rate=3e-3, batch=8, epochs=6, precision="bfloat16")
    monkeypatch.setattr("core.models.memory.has_bfloat16", lambda: False)
    with pytest.raises(InputError, match="can only emulate it"):
        fit(base, recipe=half).run()
    monkeypatch.setattr("core.models.memory.has_bfloat16", lambda: True)
    whole, rough = fit(base, recipe=Recipe(learning_rate=3e-3, batch=8, epochs=6)).run(), fit(base, recipe=half).run()
    assert rough.log.losses != whole.log.losses
    assert rough.log.losses[0] == pytest.approx(whole.log.losses[0], abs=0.02)
    assert abs(rough.metrics["accuracy"] - whole.metrics["accuracy"]) <= 0.2
    assert {value.dtype for value in rough.model.state_dict().values() if value.is_floating_point()} == {torch.float32}
