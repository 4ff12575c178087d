"""An index of 10,000 shards and 100 million samples: how long it takes to open, what memory it takes,
what a look-up costs, early and late in a run. Needs 1.6 GB in the temporary folder.

    index_scale.py [SHARDS SAMPLES_PER_SHARD]
"""
import json
import sys
import tempfile

import compare

LIMIT_S, LIMIT_BYTES = 1.0, 1e9


def main():
    shards, samples = map(int, sys.argv[1:]) if len(sys.argv) == 3 else (10000, 10000)
    with tempfile.TemporaryDirectory() as folder:
        found = json.loads(compare.run(
            [compare.PROGRAMS / "data_program", "scale", samples, folder, shards]))
    compare.report("index_scale", found["open_s"], LIMIT_S, LIMIT_S / found["open_s"],
                   limit_bytes=LIMIT_BYTES, **found)


if __name__ == "__main__":
    main()
