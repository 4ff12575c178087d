"""`scaletrain data import|pack`: BMP, GIF and TIFF become PNGs with the pixels that Pillow sees."""
import io
import os
import struct
import subprocess
import unittest

import numpy
from PIL import Image

from pictures import photograph
from tools_support import (PROGRAM, FolderTest, data, data_json, samples_of, write_tar)

LIMIT_KB = 2_000_000  # of address space
ORIENTATION = 274  # a tag of TIFF


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def bmp(width, height, bits, rows, compression=0, palette=(), masks=b"", core=False):
    """By hand, where Pillow does not write such a one; `rows`: bytes behind the header."""
    if core:
        header = struct.pack("<IHHHH", 12, width, height, 1, bits)
        colours = b"".join(bytes(reversed(c)) for c in palette)
    else:
        header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, len(rows), 0,
                             0, len(palette), 0)
        colours = b"".join(bytes(reversed(c)) + b"\0" for c in palette)
    begin = 14 + len(header) + len(masks) + len(colours)
    return (b"BM" + struct.pack("<IHHI", begin + len(rows), 0, 0, begin) + header + masks + colours
            + rows)


def tiff(width, height, entries, strip, order="<"):
    """One strip; `entries`: {tag: (type, [values])} beside the usual ones."""
    sizes, codes = {3: 2, 4: 4}, {3: "H", 4: "I"}
    entries = {256: (4, [width]), 257: (4, [height]), 259: (3, [1]), 278: (4, [height]),
               279: (4, [len(strip)]), 273: (4, [8]), **entries}
    place = 8 + len(strip) + len(strip) % 2
    table, behind = b"", b""
    end = place + 2 + 12 * len(entries) + 4
    for tag in sorted(entries):
        kind, values = entries[tag]
        raw = struct.pack(order + codes[kind] * len(values), *values)
        if sizes[kind] * len(values) > 4:
            table += struct.pack(order + "HHII", tag, kind, len(values), end + len(behind))
            behind += raw + b"\0" * (len(raw) % 2)
        else:
            table += struct.pack(order + "HHI", tag, kind, len(values)) + raw.ljust(4, b"\0")
    head = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, place)
    return (head + strip + b"\0" * (len(strip) % 2) + struct.pack(order + "H", len(entries)) + table
            + b"\0" * 4 + behind)


PALETTE = [(250, 10, 20), (0, 200, 30), (40, 50, 255), (9, 8, 7)]


def bmps():
    picture = photograph(37, 21)
    few = picture.quantize(13)
    yield "rgb", saved(picture, "BMP")
    yield "grey", saved(picture.convert("L"), "BMP")
    yield "palette", saved(few, "BMP")
    yield "bits", saved(picture.convert("1"), "BMP")
    rgba = picture.convert("RGBA")
    rgba.putalpha(picture.convert("L"))
    yield "alpha", saved(rgba, "BMP")
    random = numpy.random.default_rng(1)
    words = random.integers(0, 1 << 16, (5, 8), dtype=numpy.uint16).tobytes()
    yield "555", bmp(8, 5, 16, words)
    yield "565", bmp(8, 5, 16, words, 3, masks=struct.pack("<III", 0xf800, 0x07e0, 0x001f))
    yield "top down", bmp(8, -5, 16, words)
    longs = random.integers(0, 1 << 32, (5, 8), dtype=numpy.uint32).tobytes()
    yield "masks", bmp(8, 5, 32, longs, 3, masks=struct.pack("<III", 0xff0000, 0xff00, 0xff))
    yield "32", bmp(8, 5, 32, longs)
    yield "core", bmp(3, 2, 24, bytes(range(24)), core=True)
    yield "core palette", bmp(4, 1, 8, bytes([0, 1, 2, 3]), core=True,
                              palette=PALETTE + [(0, 0, 0)] * 252)
    yield "nibbles", bmp(5, 1, 4, bytes([0x01, 0x23, 0x10, 0]), palette=PALETTE)
    # Runs, pixels as they are, an end of a line, a move, the end.
    yield "rle8", bmp(6, 3, 8, bytes([3, 1, 0, 3, 2, 3, 1, 0, 0, 0, 6, 2, 0, 0, 6, 3, 0, 1]), 1,
                      palette=PALETTE)
    yield "rle8 moves", bmp(6, 3, 8, bytes([2, 1, 0, 2, 2, 1, 2, 3, 0, 0, 6, 2, 0, 0, 0, 1]), 1, palette=PALETTE)
    yield "rle4", bmp(6, 2, 4, bytes([3, 0x12, 0, 3, 0x23, 0x10, 0, 0, 6, 0x31, 0, 1]), 2,
                      palette=PALETTE)


def gifs():
    picture = photograph(37, 21)
    yield "plain", saved(picture.quantize(200), "GIF")
    yield "interlaced", saved(picture.quantize(200), "GIF", interlace=1)
    yield "few", saved(picture.quantize(3), "GIF", interlace=0)
    yield "clear", saved(picture.quantize(16), "GIF", transparency=5)
    moving = [photograph(37, 21).rotate(90 * i).quantize(64) for i in range(3)]
    yield "moving", saved(moving[0], "GIF", save_all=True, append_images=moving[1:])
    small = bytearray(saved(picture.quantize(16), "GIF"))
    small[6:10] = struct.pack("<HH", 50, 30)  # the screen
    yield "on a larger screen", bytes(small)
    small[6:10] = struct.pack("<HH", 10, 10)
    yield "on a smaller screen", bytes(small)
    clear = bytearray(saved(picture.quantize(16), "GIF", transparency=5))
    clear[6:10] = struct.pack("<HH", 50, 30)
    yield "clear on a larger screen", bytes(clear)


def tiffs():
    picture = photograph(37, 21)
    modes = {"1": "1", "L": "L", "P": "P", "RGB": "RGB", "CMYK": "CMYK"}
    for name, mode in modes.items():
        image = picture.quantize(100) if mode == "P" else picture.convert(mode)
        yield f"mode {name}", saved(image, "TIFF")
    alpha = picture.convert("RGBA")
    alpha.putalpha(picture.convert("L").rotate(180))
    yield "alpha", saved(alpha, "TIFF")
    grey_alpha = picture.convert("LA")
    grey_alpha.putalpha(picture.convert("L").rotate(180))
    yield "grey and alpha", saved(grey_alpha, "TIFF")
    for compression in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "zstd", "tiff_lzma"):
        yield compression, saved(picture, "TIFF", compression=compression)
    yield "group 4", saved(picture.convert("1"), "TIFF", compression="group4")
    yield "big", saved(picture, "TIFF", big_tiff=True)
    for orientation in range(1, 9):
        yield f"orientation {orientation}", saved(picture, "TIFF", tiffinfo={ORIENTATION: orientation})
    pages = [picture.rotate(90 * i) for i in range(3)]
    yield "pages", saved(pages[0], "TIFF", save_all=True, append_images=pages[1:])
    rgb = {258: (3, [8, 8, 8]), 262: (3, [2]), 277: (3, [3])}
    yield "big-endian", tiff(4, 2, rgb, bytes(range(24)), ">")
    # 4 planes, the last one's alpha multiplied into the others already.
    yield "multiplied", tiff(4, 2, {258: (3, [8] * 4), 262: (3, [2]), 277: (3, [4]), 338: (3, [1])},
                             bytes([9, 60, 100, 128] * 8))


class ForeignImages(FolderTest):
    def imported(self, kind, files):
        """{name: the pixels that import makes of it}."""
        for name, content in files:
            self.write(f"in/a/{name}.{kind}", content)
        out = self.path("out")
        data("import", "folder", self.path("in"), "--out", out)
        data("check", out)
        samples = samples_of(out)
        for _, fields in samples:
            self.assertEqual({"png", "cls"}, set(fields))
        return {key.removeprefix("a/"): numpy.asarray(Image.open(io.BytesIO(fields["png"])))
                for key, fields in samples}

    def compare(self, kind, files, most=0):
        files = list(files)
        found = self.imported(kind, files)
        self.assertEqual(len(files), len(found))
        for name, content in files:
            with self.subTest(name):
                image = Image.open(io.BytesIO(content))
                image.load()
                expected = numpy.asarray(image.convert("RGB"), dtype=int)
                self.assertEqual(expected.shape, found[name].shape)
                self.assertLessEqual(numpy.abs(expected - found[name]).max(), most)

    def test_bmps_are_as_pillow_sees_them(self):
        self.compare("bmp", bmps())

    def test_gifs_are_as_pillow_sees_their_first_frame(self):
        self.compare("gif", gifs())

    def test_tiffs_are_as_pillow_sees_their_first_page(self):
        self.compare("tif", tiffs(), most=1)  # CMYK is rounded

    def test_a_jpeg_in_a_tiff(self):
        self.compare("tiff", [("jpeg", saved(photograph(64, 48), "TIFF", compression="jpeg"))], most=2)

    def test_16_bits_are_scaled_to_8(self):
        grey = numpy.arange(0, 65536, 131, dtype=numpy.uint16)[:500].reshape(10, 50)
        rgb = numpy.stack([grey, grey[::-1], 65535 - grey], axis=-1)
        files = [("grey", tiff(50, 10, {258: (3, [16]), 262: (3, [1]), 277: (3, [1])}, grey.tobytes())),
                 ("rgb", tiff(50, 10, {258: (3, [16] * 3), 262: (3, [2]), 277: (3, [3])},
                              rgb.tobytes()))]
        found = self.imported("tif", files)
        for name, values in (("grey", numpy.repeat(grey[..., None], 3, axis=-1)), ("rgb", rgb)):
            self.assertLessEqual(numpy.abs(values / 257 - found[name]).max(), 1)

    def test_pack_writes_them_as_png_or_as_it_is_told(self):
        picture = photograph(37, 21)
        self.write("in/a/x.bmp", saved(picture, "BMP"))
        self.write("in/b/y.jpg", saved(picture.quantize(9), "GIF"))  # whatever it is called
        self.write("in/b/z.TIF", saved(picture, "TIFF", tiffinfo={ORIENTATION: 6}))
        for flags, extension in (([], "png"), (["--reencode", "raw"], "rgb8"),
                                 (["--resize", 10], "jpg"), (["--skip-bad"], "png")):
            out = self.path("out" + extension + str(len(flags)))
            data("pack", self.path("in"), out, *flags)
            samples = dict(samples_of(out))
            self.assertEqual({extension}, {e for fields in samples.values() for e in fields} - {"cls"})
            if extension == "png":
                upright = Image.open(io.BytesIO(samples["b/z"]["png"]))
                self.assertEqual((21, 37), upright.size)

    def test_tar_parquet_and_tfrecord_may_have_such_images(self):
        picture = photograph(37, 21)
        tif, gif = saved(picture, "TIFF"), saved(picture.quantize(9), "GIF")
        write_tar(self.path("in.tar"), [("0.tif", tif), ("0.cls", b"1"), ("1.gif", gif), ("1.cls", b"2"),
                                        ("2.mask.tif", tif), ("2.jpg", saved(picture, "JPEG")),
                                        ("2.cls", b"0"), ("3.Tiff", tif), ("3.cls", b"0")])
        data("import", "tar", self.path("in.tar"), "--out", self.path("out"))
        data("check", self.path("out"))
        fields = {key: set(found) for key, found in samples_of(self.path("out"))}
        self.assertEqual({"0": {"png", "cls"}, "1": {"png", "cls"}, "2": {"mask.tif", "jpg", "cls"},
                          "3": {"png", "cls"}}, fields)
        data("import", "tar", self.path("in.tar"), "--image-field", "tif", "--out", self.path("no"),
             code=65)
        import pyarrow
        import pyarrow.parquet
        pyarrow.parquet.write_table(pyarrow.table({"image": [tif, gif], "label": [0, 1]}),
                                    self.path("in.parquet"))
        data("import", "parquet", self.path("in.parquet"), "--out", self.path("rows"))
        for (_, found), of in zip(samples_of(self.path("rows")), (picture, picture.quantize(9))):
            numpy.testing.assert_array_equal(numpy.asarray(of.convert("RGB")),
                                             numpy.asarray(Image.open(io.BytesIO(found["png"]))))

    def refused(self, name, content):
        self.write(f"bad/a/{name}", content)
        text = data("import", "folder", self.path("bad"), "--out", self.path("no"), code=65)
        os.unlink(self.path("bad/a", name))
        self.assertIn(f"bad/a/{name}: the image is damaged: ", text)
        return text.split("the image is damaged: ")[1].split("\n")[0]

    def test_a_damaged_file_is_an_error_with_its_cause(self):
        pixels = photograph(37, 21)
        whole = {"bmp": saved(pixels, "BMP"), "gif": saved(pixels.quantize(9), "GIF"),
                 "tif": saved(pixels, "TIFF", compression="tiff_lzw")}
        for kind in ("bmp", "gif"):
            self.assertEqual("the file is truncated", self.refused(f"x.{kind}", whole[kind][:-50]))
        self.assertEqual("the file is truncated", self.refused("x.bmp", whole["bmp"][:20]))
        self.refused("x.tif", whole["tif"][:100])
        self.assertEqual("a kind of BMP that is not supported",
                         self.refused("x.bmp", bmp(4, 4, 24, bytes(64), compression=4)))
        self.assertEqual("a pixel has no colour in the palette",
                         self.refused("x.bmp", bmp(4, 1, 8, bytes([0, 1, 2, 9]), palette=PALETTE)))
        self.assertEqual("a run goes beyond the picture",
                         self.refused("x.bmp", bmp(4, 1, 8, bytes([9, 1, 0, 1]), 1, palette=PALETTE)))
        self.assertEqual("60000 x 60000 pixels are more than data.max_pixels allows, which is 100000000",
                         self.refused("x.bmp", bmp(60000, 60000, 24, bytes(64))))
        floats = tiff(2, 2, {258: (3, [32]), 262: (3, [1]), 277: (3, [1]), 339: (3, [3])}, bytes(16))
        self.assertEqual("a TIFF whose samples are not unsigned integers, which is not supported",
                         self.refused("x.tif", floats))
        old = tiff(2, 2, {258: (3, [8]), 262: (3, [1]), 277: (3, [1]), 259: (3, [6])}, bytes(16))
        self.assertEqual("a TIFF with compression 6, which is not supported", self.refused("x.tif", old))

    def test_sizes_that_are_not_there_take_no_memory(self):
        grey = {258: (3, [8]), 262: (3, [1]), 277: (3, [1])}
        sides = tiff(2, 2, {**grey, 256: (4, [1 << 20]), 257: (4, [1 << 20])}, bytes(16))
        self.assertIn("pixels are more than", self.refused("x.tif", sides))
        tile = tiff(2, 2, {**grey, 322: (4, [1 << 20]), 323: (4, [1 << 14]), 324: (4, [8]),
                           325: (4, [16])}, bytes(16))
        self.assertEqual("a strip or tile that is much larger than the picture",
                         self.refused("x.tif", tile))
        screen = bytearray(saved(photograph(8, 8).quantize(4), "GIF"))
        screen[6:10] = b"\xff\xff\xff\xff"
        self.assertIn("65535 x 65535 pixels are more than", self.refused("x.gif", bytes(screen)))

    def test_thousands_of_damaged_files_end_in_errors_within_little_memory(self):
        random = numpy.random.default_rng(7)
        number = 0
        for kind, files in (("bmp", bmps()), ("gif", gifs()), ("tif", tiffs())):
            for _, content in files:
                for _ in range(15):
                    damaged = bytearray(content[:random.integers(1, len(content) + 1)]
                                        if random.random() < 0.3 else content)
                    for _ in range(random.integers(1, 6)):
                        damaged[random.integers(len(damaged)) if random.random() < 0.5 else
                                random.integers(min(len(damaged), 200))] = random.integers(256)
                    self.write(f"in/a/{number}.{kind}", bytes(damaged))
                    number += 1
        done = subprocess.run(
            ["bash", "-c", f'ulimit -v {LIMIT_KB}; exec "$@"', "bash", PROGRAM, "data", "pack",
             self.path("in"), self.path("out"), "--skip-bad", "--json", "--threads", "2"],
            capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(0, done.returncode, done.stderr[-2000:])
        self.assertGreater(done.stderr.count("the image is damaged"), 100)
        for line in done.stderr.splitlines():  # nothing but our own lines
            self.assertRegex(line, r"^warning: .*: skipped$")
        data("check", self.path("out"))


if __name__ == "__main__":
    unittest.main()
