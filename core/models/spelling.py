"""Tokens as readable text."""

import re
from typing import Any

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")  # a byte of a SentencePiece tokenizer
_LOST = "\ufffd"


def spelled(tokenizer: Any, ids: list[int]) -> list[str]:
    """Return the readable text of each token. Byte-level tokens are decoded, and a leading space is shown as `·`.

    A character that several tokens share is written at the first of them, and with its part at the others: "我",
    "我[2/3]", "我[3/3]". Bytes without a character are written as "<0xE6>".
    """
    pieces = tokenizer.convert_ids_to_tokens(ids)
    special = set(tokenizer.all_special_ids)
    ordinary = [token_id not in special for token_id in ids]
    if any("Ġ" in piece or "Ċ" in piece for piece in pieces) or _is_byte_level(tokenizer):
        decoded = [
            tokenizer.decode([token_id]).replace(" ", "·") or piece if own else piece
            for token_id, piece, own in zip(ids, pieces, ordinary, strict=True)
        ]
        as_bytes = [_bytes_of(piece) if own else None for piece, own in zip(pieces, ordinary, strict=True)]
    else:
        decoded, as_bytes = pieces, [None] * len(pieces)
        for k, piece in enumerate(pieces):
            if ordinary[k] and (byte := _BYTE.fullmatch(piece)):
                as_bytes[k] = bytes([int(byte[1], 16)])
    if not any(
        own is not None and (_LOST in text or _BYTE.fullmatch(text))
        for own, text in zip(as_bytes, decoded, strict=True)
    ):
        return decoded
    spelled_pieces, start = list(decoded), 0
    while start < len(decoded):
        if as_bytes[start] is None:
            start += 1
            continue
        stop = start
        while stop < len(decoded) and as_bytes[stop] is not None:
            stop += 1
        spelled_pieces[start:stop] = _spelled_run([own or b"" for own in as_bytes[start:stop]])
        start = stop
    return spelled_pieces


def _spelled_run(parts: list[bytes]) -> list[str]:
    """Each part of a run of bytes as text."""
    owner = [number for number, part in enumerate(parts) for _ in part]
    whole, position = b"".join(parts), 0
    texts = [""] * len(parts)
    while position < len(whole):
        size = next((size for size in (1, 2, 3, 4) if _decodes(whole[position : position + size])), 0)
        if not size:
            texts[owner[position]] += f"<0x{whole[position]:02X}>"
            position += 1
            continue
        letter = whole[position : position + size].decode()
        owners = sorted(set(owner[position : position + size]))
        for part, number in enumerate(owners, 1):
            texts[number] += letter if part == 1 else f"{letter}[{part}/{len(owners)}]"
        position += size
    return [text.replace(" ", "·") for text in texts]


def _decodes(some: bytes) -> bool:
    try:
        return len(some.decode()) == 1
    except UnicodeDecodeError:
        return False


_PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
_BYTES = {  # the byte for each letter of a byte-level vocabulary (GPT-2's table)
    **{chr(byte): byte for byte in _PRINTABLE},
    **{chr(256 + number): byte for number, byte in enumerate(_OTHERS)},
}


def _bytes_of(piece: str) -> bytes | None:
    """Return the bytes of a byte-level token; None for other spellings."""
    known = [_BYTES.get(letter) for letter in piece]
    return None if None in known else bytes(byte for byte in known if byte is not None)


def _is_byte_level(tokenizer: Any) -> bool:
    return "ByteLevel" in repr(getattr(tokenizer.backend_tokenizer, "decoder", None))
