"""Generation step by step: rows kept one by one are those of the whole text; chats; what is refused."""

import numpy as np
import pytest
import torch

from core.capture import generating
from core.capture.generating import check_prompt, generate
from core.capture.running import capture
from core.errors import CheckpointError, InputError
from core.models.chat import Message, chat_text, encode_chat
from core.models.encoding import Encoding
from tests.capture.conftest import WINDOW, tiny, writer

FAMILIES = ["gpt2", "gpt_neo", "falcon", "mistral", "gemma2", "qwen3", "gpt_oss"]
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<|a|>{% endif %}"
)


@pytest.fixture
def decoder():
    checkpoint = writer("gpt2")
    checkpoint.tokenizer.chat_template = TEMPLATE
    yield checkpoint
    checkpoint.tokenizer.chat_template = None


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_that_were_kept_step_by_step_are_those_of_the_whole_text(family):
    checkpoint = writer(family)
    prompt = checkpoint.encode("the old dog")
    heard = []
    made = generate(checkpoint, prompt, new=2 * WINDOW, temperature=1.0, seed=3, on_step=heard.append)
    read = [step for step in made.steps if not step.ends]
    assert heard == list(made.steps)
    assert len(read) > WINDOW
    ids, tokens = (*prompt.ids, *(step.piece for step in read)), (*prompt.tokens, *(step.token for step in read))
    nothing = (None,) * len(ids)
    whole = Encoding("", None, ids, (0,) * len(ids), tokens, nothing, nothing, first=0, separators=())
    wanted = capture(checkpoint, whole)
    for steps in (0, 1, len(read)):
        grown = made.grown(steps)
        length = len(prompt) + steps
        assert grown.tokens == wanted.tokens[:length]
        assert grown.sink == wanted.sink
        assert np.allclose(grown.weights[..., :length], wanted.weights[:, :, :length, :length], atol=1e-4)


@pytest.mark.parametrize("family", ["gpt2", "gpt_oss"])
def test_of_a_long_prompt_the_new_rows_are_kept_over_the_last_tokens(family, monkeypatch):
    checkpoint = writer(family)
    prompt = checkpoint.encode("the old dog saw a small bag and did not carry it")
    whole = generate(checkpoint, prompt, new=3, temperature=2.0, seed=4)
    monkeypatch.setattr(generating, "WHOLE", 12)
    made = generate(checkpoint, prompt, new=3, temperature=2.0, seed=4)
    rows, wanted = made.grown(3), whole.grown(3).weights[:, :, len(prompt) :]
    earlier = len(prompt) + 3 - 11
    assert made.maps is None
    assert rows.keys[0] == f"… {earlier} earlier"
    assert np.allclose(rows.weights[..., 1:], wanted[..., earlier:], atol=1e-4)
    assert np.allclose(rows.weights[..., 0], wanted[..., :earlier].sum(-1), atol=1e-4)
    with pytest.raises(InputError, match="Generate a token first"):
        made.grown(0)


def test_the_most_probable_token_is_taken_and_its_probability_said():
    checkpoint = writer("gpt2")
    prompt = checkpoint.encode("the old dog")
    made = generate(checkpoint, prompt, new=2)
    with torch.no_grad():
        chances = checkpoint.model(torch.tensor([prompt.ids])).logits[0, -1].softmax(-1)
    assert made.steps[0].piece == int(chances.argmax())
    assert made.steps[0].probability == pytest.approx(float(chances.max()), abs=1e-5)
    assert made.steps[0].likely[0][0] == made.steps[0].token


def test_the_same_seed_draws_the_same_text():
    checkpoint = writer("gpt2")
    prompt = checkpoint.encode("the old dog")
    pieces = [
        [step.piece for step in generate(checkpoint, prompt, new=8, temperature=2.0, seed=seed).steps]
        for seed in (1, 1, 2)
    ]
    assert pieces[0] == pieces[1] != pieces[2]


def test_a_prompt_beyond_the_context_is_refused():
    checkpoint = writer("gpt2")
    prompt = checkpoint.encode("dog " * 2000)
    with pytest.raises(InputError, match=r"must fit into the context .*1024 tokens.* Shorten the prompt"):
        check_prompt(checkpoint, prompt, 5)
    with pytest.raises(InputError, match="from 1 to 512"):
        check_prompt(checkpoint, checkpoint.encode("dog"), 0)
    with pytest.raises(CheckpointError, match="needs a decoder with a language model head"):
        check_prompt(tiny("bert"), tiny("bert").encode("dog"), 1)


def test_a_chat_is_written_by_the_tokenizers_template(decoder):
    messages = [Message("system", "be kind"), Message("user", "the old dog")]
    assert chat_text(decoder, messages) == "<|system|>be kind\n<|user|>the old dog\n<|a|>"
    encoding = encode_chat(decoder, messages)
    assert decoder.tokenizer.decode(encoding.ids) == encoding.text
    assert len(generate(decoder, encoding, new=2).steps) >= 1


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__.os.system('touch /tmp/x') }}",
        "{% include '/etc/passwd' %}",
        "{{ raise_exception('roles must alternate') }}",
        "{% for a in range(10**9) %}x{% endfor %}",
        "{{ 'x' * 10**6 }}",
        "{% for m in",
    ],
)
def test_a_template_with_code_in_it_is_stopped_in_a_sentence(decoder, template):
    decoder.tokenizer.chat_template = template
    with pytest.raises(CheckpointError, match=r"chat template (must be able to format|produces must have at most)"):
        chat_text(decoder, [Message("user", "hello")])


def test_what_is_no_chat_is_refused(decoder):
    with pytest.raises(InputError, match="one of system, user, assistant"):
        chat_text(decoder, [Message("robot", "hello")])
    with pytest.raises(InputError, match="at least one message"):
        chat_text(decoder, [])
    with pytest.raises(InputError, match="must contain text; message 2 is empty"):
        chat_text(decoder, [Message("user", "hello"), Message("assistant", "  ")])
    decoder.tokenizer.chat_template = None
    with pytest.raises(CheckpointError, match="Type the prompt as plain"):
        chat_text(decoder, [Message("user", "hello")])
