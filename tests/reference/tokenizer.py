#!/usr/bin/env python3
"""Regenerates tokenizer.json, what tests/cli/tokenizer.rs compares the operator `tokenizer` with.

    python3 tests/reference/tokenizer.py
    python3 tests/reference/tokenizer.py path/to/a/tokenizer.json

It makes a virtual environment in a temporary folder, installs the pinned peer there and runs
itself in it. With an argument it writes nothing: it loads the `tokenizer.json` that Galeras
learned from the texts below and fails unless it encodes and decodes as Python's own does.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

PINS = ["tokenizers==0.23.3"]
OUT = pathlib.Path(__file__).with_suffix(".json")
VOCAB_SIZES = [256, 300, 10000]

TEXTS = [
    "def area(width, height):\n    size = width * height\n    return size\n",
    'def name(self):\n\t"""Son père\'s naïve façade: 世界 🎉."""\n\treturn self.name\n',
    "async def read(self, path: str) -> bytes:\r\n    async with open(path) as f:\r\n"
    "        return await f.read()\r\n",
    "def total(values):\n    total = 0\n    for value in values:\n        total += value\n"
    "    return total\n",
    "def total(values):\n    return sum(values)\n",
    "x  =  [1, 22, 333]   # it's, we'll, don't\n\n\n",
    "",
    " leading and trailing  ",
]

# Texts that were not learned from.
OTHERS = ["def other(self):\n    return self.width\n", "日本語 \x00\x01 ÿ", "\t\t  values", ""]


def bootstrap():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = os.path.join(folder, "bin", "python")
        subprocess.run([python, "-m", "pip", "install", "-q", *PINS], check=True)
        env = dict(os.environ, GALERAS_PEERS="1")
        return subprocess.run([python, *sys.argv], env=env).returncode


def learned(vocab_size):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def check(path):
    from tokenizers import Tokenizer

    theirs = Tokenizer.from_file(path)
    ours = learned(theirs.get_vocab_size())
    assert theirs.get_vocab() == ours.get_vocab()
    for text in TEXTS + OTHERS:
        assert theirs.encode(text).ids == ours.encode(text).ids, text
        assert theirs.decode(theirs.encode(text).ids) == text, text
    print(f"{path}: {theirs.get_vocab_size()} tokens, {len(TEXTS + OTHERS)} texts, all equal")


def main():
    models = []
    for vocab_size in VOCAB_SIZES:
        model = json.loads(learned(vocab_size).to_str())["model"]
        # The bytes are the same in every model; what was learned comes after.
        rest = {token: at for token, at in model["vocab"].items() if at >= 256}
        models.append(
            {
                "vocab_size": vocab_size,
                "reached": len(model["vocab"]),
                "bytes": "".join(sorted(model["vocab"], key=model["vocab"].get)[:256]),
                "vocab": rest,
                "merges": model["merges"],
            }
        )
    result = {"peers": PINS, "texts": TEXTS, "models": models}
    OUT.write_text(json.dumps(result, indent=1, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    if not os.environ.get("GALERAS_PEERS"):
        sys.exit(bootstrap())
    sys.exit(check(sys.argv[1]) if len(sys.argv) == 2 else main())
