#!/usr/bin/env python3
"""Small tokenizers of every kind that Eckart reads, and what Hugging Face's `tokenizers` makes of hard texts.

usage: tests/golden/make_tokenizers.py      (needs the package tokenizers; the files were made with 0.23.3)

Writes tokenizers/NAME.json, one tokenizer.json each, and tokenizers/golden.json: the texts and, for each tokenizer
and text, the ids, the places in bytes, and the decoded text with and without special tokens.
"""
import json
import pathlib

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Regex

HERE = pathlib.Path(__file__).resolve().parent / "tokenizers"

# What they are trained on: enough for merges of several levels in several scripts.
CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't mind: it's asleep.",
    "Attention is a weighted sum of values; the weights are a softmax of scores of queries and keys.",
    "A matrix of rank one is a column times a row. The singular value decomposition sums such matrices.",
    "We'll see what they've done, I'm sure you're right, he'd said so, and she's here.",
    "def attend(q, k, v):\n    scores = q @ k.T / math.sqrt(d)\n    return softmax(scores) @ v\n",
    "for (int i = 0; i < n; ++i) {\n\tsum += x[i] * y[i];\n}\n",
    "In 1936 Eckart and Young showed it; in 2017, 3.14159 and 1000000 were only numbers.",
    "https://example.org/path?query=value&other=1#part and name@example.org",
    "Zürich, naïve café, façade, El Niño, smörgåsbord, Łódź, Ångström, coöperate.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "注意力机制是加权和。我们爱线性代数。",
    "すべてのベクトルは行列です。カタカナもあります。",
    "모든 행렬은 특이값 분해를 가진다.",
    "כל מטריצה היא סכום. كل مصفوفة لها رتبة.",
    "ทุกเมทริกซ์มีค่าเอกฐาน सभी आव्यूहों का एक पद होता है।",
    "the the the the attention attention attention matrix matrix matrix rank rank rank",
    "low lower lowest new newer newest wide wider widest unrelated related relation",
]

# Hard in one way or another.
TEXTS = [
    "",
    " ",
    "  ",
    "a",
    " a",
    "a ",
    "Hello, world! It's the quick brown fox.",
    "HELLO We'LL THEY'VE i'M",
    "  two  spaces   three    four  ",
    "tabs\tand\nnewlines\r\nand\n\n\nmore \n \n x\u000b\u000c",
    "caf\u00e9 cafe\u0301 na\u00efve \u00c5ngstr\u00f6m A\u030a \u212b",
    "\u1e9b\u0323 \ufb01 \u00bd \u2460 \uff21\uff22 \u0132 \ufdfa",
    "q\u0323\u0307 q\u0307\u0323 a\u0327\u0301\u0323 \u0344 \u0f73",
    "\u0130stanbul I\u0131 \u03a3\u03c2\u03c3 \u1e9e\u00df \u01c5",
    "我爱注意力。线性代数, 北京abc大学",
    "すべてのベクトル カタカナ が か\u3099 ﾊﾟ",
    "모든 행렬 \u1112\u1161\u11ab 한",
    "שלום עולם، مرحبا بالعالم كل مصفوفة",
    "ทุกเมทริกซ์ น้ำ กำ",
    "सभी आव्यूह क्षत्रिय தமிழ் ಕನ್ನಡ",
    "😀 👩\u200d👩\u200d👧\u200d👦 🇫🇷🏳️\u200d🌈 👍🏽 ❤\ufe0f",
    "zero\u200bwidth\u200cjoin\u200der \ufeffbom soft\u00adhyphen \u2060",
    "nbsp\u00a0em\u2003thin\u2009ideographic\u3000line\u2028par\u2029ogham\u1680mvs\u180eend\u0085",
    "nul\u0000bel\u0007esc\u001b[0m del\u007f c1\u0080 \ufffd\ue000\U000f0000\U0010ffff",
    "0 1 12 123 1234 12345 3.14159 1,000,000 1e-5 ½ ² ⅷ ١٢٣ １２",
    "https://example.org/path?query=value&other=1#part user@host.com C:\\dir\\file.txt",
    "def f(x):\n    return x**2  # note\n\n\nclass A:\n\tpass\n",
    "x[i]+=y->z; a<b && c||d; {\"key\": [1, null]} $100 €5 £ ^ ` ~ ∑∫",
    "<|endoftext|>",
    "one<|endoftext|>two <|endoftext|> three<|endoftext|><|endoftext|>",
    "<s>[INST] Hi [/INST] answer</s><s>",
    "[CLS] masked [MASK] word [SEP] [mask] [UNK]",
    "a <mask> b<mask>  <mask>c   <pad>",
    "<|user|>\nHello<|end|>\n  <|assistant|>  hi",
    "yesterday Yesterday yesterdays yésterday to-yesterday yesterday's",
    "antidisestablishmentarianism " + "pneumono" * 3,
    "a" * 120 + " " + "é" * 101 + " " + "界" * 30,
    "lowest newest widest unrelated attention matrix rank",
    "the\u2581quick \u2581 \u2581\u2581brown \u2581",
    "<0x0A> <0x41>\u0001 <unk> </w> ##ing Ġthe Ċ",
    "'s 't'll ''' \"quoted\" “curly” ‘single’ — – … • !? ?! ...",
    "  leading\n\n  and trailing  \n",
    "\n\n\n\n    indented\n        more\n\t\t\ttabs",
    "ſ K Å ǆ ᾳ ﬅ ŉ ΐ",
    "do not don't n't it 's I 'm we 've they 're , . ! ?",
    "\U0001d54f\U0001d4d0 \U00020000\u3400\uf900 \U0001f600\U0001f9d1\u200d\U0001f680",
]

GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
LLAMA3 = (r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"""
          r"""\s*[\r\n]+|\s+(?!\S)|\s+""")
QWEN2 = LLAMA3.replace("{1,3}", "")
BLOOM = r""" ?[^(\s|[.,!?…。，、।۔،])]+"""
SPACE = "\u2581"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def train(tokenizer, trainer):
    tokenizer.train_from_iterator(CORPUS, trainer)
    return json.loads(tokenizer.to_str())


def byte_level(size, pattern):
    """Vocabulary and merges over bytes, split by a pattern."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    model = train(tokenizer, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False))
    return model["model"]["vocab"], [tuple(merge) for merge in model["model"]["merges"]]


def space_marked(size, alphabet):
    """As SentencePiece's BPE: unknown, begin, end, all bytes, and then what was learned."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=["<unk>", "<s>", "</s>", *BYTES],
                                  limit_alphabet=alphabet, show_progress=False)
    model = train(tokenizer, trainer)
    vocab = model["model"]["vocab"]
    vocab.setdefault(SPACE * 2, len(vocab))
    return vocab, [tuple(merge) for merge in model["model"]["merges"]] + [(SPACE, SPACE)]


def special(*contents, **options):
    return [AddedToken(content, special=True, normalized=False, **options) for content in contents]


def template(before, behind=()):
    names = list(before) + list(behind)

    def set_on(tokenizer):
        return processors.TemplateProcessing(
            single=" ".join([*before, "$A", *behind]),
            special_tokens=[(name, tokenizer.token_to_id(name)) for name in dict.fromkeys(names)])
    return set_on


def gpt2():
    tokenizer = Tokenizer(models.BPE(*byte_level(480, GPT2)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special("<|endoftext|>"))
    return tokenizer


def gpt_neox():
    """NFC first, and runs of spaces that were added later."""
    tokenizer = gpt2()
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    tokenizer.add_tokens([AddedToken(" " * n, normalized=True) for n in (4, 3, 2)])
    return tokenizer


def roberta():
    vocab, merges = byte_level(420, GPT2)
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer = Tokenizer(models.BPE({**{name: i for i, name in enumerate(names)},
                                      **{token: i + 4 for token, i in vocab.items()}}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.add_special_tokens(special(*names) + special("<mask>", lstrip=True))
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True,
                                                            add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def llama3():
    tokenizer = Tokenizer(models.BPE(*byte_level(480, LLAMA3), ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.add_special_tokens(special("<|begin_of_text|>", "<|endoftext|>", "<|user|>", "<|end|>"))
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False), template(["<|begin_of_text|>"])(tokenizer)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def qwen2():
    tokenizer = Tokenizer(models.BPE(*byte_level(480, QWEN2)))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.add_special_tokens(special("<|endoftext|>", "<|im_start|>"))
    tokenizer.add_tokens([AddedToken("yesterday", normalized=True, single_word=True)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def bloom():
    """Several splits, one with a class within a class, as BLOOM's and DeepSeek's."""
    tokenizer = Tokenizer(models.BPE(*byte_level(400, GPT2)))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"),
        pre_tokenizers.Split(Regex("[一-龥぀-ゟ゠-ヿ]+"), "isolated"),
        pre_tokenizers.Split(Regex(BLOOM), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def llama_decoder():
    return decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(),
                              decoders.Strip(" ", 1, 0)])


def llama2():
    tokenizer = Tokenizer(models.BPE(*space_marked(560, 90), unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    tokenizer.add_special_tokens(special("<unk>", "<s>", "</s>"))
    tokenizer.add_special_tokens(special("<|user|>", "<|end|>", "<|assistant|>", rstrip=True))
    tokenizer.post_processor = template(["<s>"])(tokenizer)
    tokenizer.decoder = llama_decoder()
    return tokenizer


def mistral():
    """Spaces are marked when the text is split, and one is put before its beginning alone."""
    tokenizer = Tokenizer(models.BPE(*space_marked(560, 90), unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="first", split=False)
    tokenizer.add_special_tokens(special("<unk>", "<s>", "</s>", "[INST]", "[/INST]"))
    tokenizer.post_processor = template(["<s>"], ["</s>"])(tokenizer)
    tokenizer.decoder = llama_decoder()
    return tokenizer


def gemma():
    tokenizer = Tokenizer(models.BPE(*space_marked(560, 90), unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", SPACE)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.add_special_tokens(special("<unk>", "<s>", "</s>", "<mask>"))
    tokenizer.add_tokens([AddedToken("\n" * n, normalized=False) for n in (2, 3, 4)])
    tokenizer.post_processor = template(["<s>"])(tokenizer)
    tokenizer.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def bert(lowercase, size):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=size, special_tokens=names,
                                                                    show_progress=False))
    tokenizer.post_processor = template(["[CLS]"], ["[SEP]"])(tokenizer)
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def unigram():
    """As T5's, but with NFKC in the place of SentencePiece's own table."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(),
                                                 normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
    tokenizer.train_from_iterator(CORPUS, trainers.UnigramTrainer(
        vocab_size=330, unk_token="<unk>", special_tokens=["<pad>", "</s>", "<unk>"], show_progress=False))
    tokenizer.post_processor = template([], ["</s>"])(tokenizer)
    tokenizer.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="always")
    return tokenizer


def openai_gpt():
    """Ends of words are marked, accents are stripped."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=False))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=260, special_tokens=["<unk>"], end_of_word_suffix="</w>", limit_alphabet=50, show_progress=False))
    tokenizer.add_tokens([AddedToken("Yesterday", normalized=True, single_word=False, lstrip=True)])
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    return tokenizer


def prefixed():
    """A BPE whose pieces within a word are marked."""
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]", continuing_subword_prefix="##", fuse_unk=True))
    tokenizer.normalizer = normalizers.NFKD()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=330, special_tokens=["[UNK]"], continuing_subword_prefix="##", limit_alphabet=60,
        show_progress=False))
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    return tokenizer


def words():
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits(True)])
    tokenizer.train_from_iterator(CORPUS, trainers.WordLevelTrainer(special_tokens=["[UNK]"], show_progress=False))
    return tokenizer


KINDS = {
    "gpt2": gpt2, "gpt_neox": gpt_neox, "roberta": roberta, "llama3": llama3, "qwen2": qwen2, "bloom": bloom,
    "llama2": llama2, "mistral": mistral, "gemma": gemma, "bert_uncased": lambda: bert(True, 420),
    "bert_cased": lambda: bert(False, 420), "unigram": unigram, "openai_gpt": openai_gpt, "prefixed": prefixed,
    "words": words,
}


def case_of(tokenizer, text):
    encoding = tokenizer.encode(text)
    places = [0]
    for character in text:
        places.append(places[-1] + len(character.encode()))
    spans = [place for begin, end in encoding.offsets for place in (places[begin], places[end])]
    case = {"ids": encoding.ids, "spans": spans, "decoded": tokenizer.decode(encoding.ids, skip_special_tokens=False)}
    skipped = tokenizer.decode(encoding.ids, skip_special_tokens=True)
    return case if skipped == case["decoded"] else {**case, "skipped": skipped}


def main():
    HERE.mkdir(exist_ok=True)
    golden = {"texts": TEXTS, "tokenizers": {}}
    for name, make in KINDS.items():
        tokenizer = make()
        text = tokenizer.to_str()
        if name == "gpt2":
            # As files of before 2024 have them.
            tree = json.loads(text)
            tree["model"]["merges"] = [" ".join(merge) for merge in tree["model"]["merges"]]
            text = json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
        (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        golden["tokenizers"][name] = [case_of(tokenizer, text) for text in TEXTS]
    lines = json.dumps(golden, ensure_ascii=True, separators=(",", ":")).replace('{"ids"', '\n{"ids"')
    (HERE / "golden.json").write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
