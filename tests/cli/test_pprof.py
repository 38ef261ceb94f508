"""test_pprof.py: an exported profile, read by protoc and by the real pprof. Skipped where neither is installed.

    test_pprof.py TRACEALLOC [--go]
"""
import gzip
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def go(path, sample):
    done = subprocess.run(["go", "tool", "pprof", "-top", *(["-unit=bytes"] if "space" in sample else []), f"-sample_index={sample}", path],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env={**os.environ, "HOME": os.path.dirname(path)})
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def main():
    tracealloc, with_go = os.path.abspath(sys.argv[1]), "--go" in sys.argv
    if shutil.which("go" if with_go else "protoc") is None:
        print("no go here" if with_go else "no protoc here")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        program, recording, profile = f"{folder}/server", f"{folder}/server.ta", f"{folder}/server.pb.gz"
        subprocess.run(["cc", "-g", "-O1", "-o", program, f"{ROOT}/examples/server.c"], check=True)
        subprocess.run([tracealloc, "run", "-q", "-o", recording, program, "1000"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([tracealloc, "export", recording, "--format", "pprof", "-o", profile], check=True)
        if with_go:
            live, total = go(profile, "inuse_space"), go(profile, "alloc_objects")
            assert "File: server\n" in live, live
            assert any(line.split()[0] == "100000B" and "format_log_line" in line for line in live.splitlines()), live
            assert any(line.split()[0] == "4900" and "render_page" in line for line in total.splitlines()), total
            return 0
        text = subprocess.run(["protoc", f"--proto_path={ROOT}/tests/cli", "--decode=pprof.Profile", "profile.proto"],
                              input=gzip.decompress(open(profile, "rb").read()), stdout=subprocess.PIPE, check=True)
        lines = [line.strip() for line in text.stdout.decode().splitlines()]
        assert lines.count("sample_type {") == 4
        for wanted in ("value: 100000", 'string_table: "format_log_line"', 'string_table: "inuse_space"',
                       "mapping {", "label {"):
            assert wanted in lines, wanted
        # proto3 leaves out zeros, so ids are there exactly when they are not 0
        assert sum(line.startswith("location_id:") for line in lines) > 10
    return 0


if __name__ == "__main__":
    sys.exit(main())
