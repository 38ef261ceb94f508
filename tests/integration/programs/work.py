# work.py: Python's containers, threads, processes, C extensions and C++-free corners, with a result that must not vary.
import ctypes, hashlib, json, multiprocessing, re, subprocess, sys, threading, zlib, decimal, sqlite3, xml.etree.ElementTree


def square_sum(n):
    return sum(len(str(i * i)) for i in range(n))


def main():
    table = {f"key{i}": [i, str(i) * (i % 40), {"nested": i / 7}] for i in range(30000)}
    text = json.dumps(table, sort_keys=True)
    print(len(text), hashlib.sha256(text.encode()).hexdigest())
    print(len(json.loads(text)), len(re.findall(r"key\d*7\b", text)), re.sub(r"[0-9]+", "#", text[:200]))
    print(hashlib.md5(zlib.decompress(zlib.compress(text.encode(), 9))).hexdigest())

    results = [None] * 16
    def work(at):
        results[at] = square_sum(3000 + at)
    threads = [threading.Thread(target=work, args=(at,)) for at in range(16)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print(sum(results))
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(3) as pool:
            print(method, pool.map(square_sum, range(0, 5000, 250)))
    print(subprocess.run([sys.executable, "-c", "print('child', 6 * 7)"], capture_output=True, text=True).stdout.strip())

    libc = ctypes.CDLL(None)
    libc.strdup.restype = ctypes.c_void_p
    copy = libc.strdup(b"a text")
    print(ctypes.string_at(copy))
    libc.free(ctypes.c_void_p(copy))
    buffers = [ctypes.create_string_buffer(i * 100) for i in range(500)]
    print(sum(len(b) for b in buffers))

    decimal.getcontext().prec = 2000
    print(str(decimal.Decimal(2).sqrt())[-20:], str(3**9000)[-20:])
    db = sqlite3.connect(":memory:")
    db.execute("create table t (a, b)")
    db.executemany("insert into t values (?, ?)", ((i % 97, str(i)) for i in range(20000)))
    print(db.execute("select a, count(*), max(b) from t group by a order by 2 desc, 1 limit 3").fetchall())
    tree = xml.etree.ElementTree.fromstring("<a>" + "".join(f"<b c='{i}'>{i}</b>" for i in range(5000)) + "</a>")
    print(sum(int(child.get("c")) for child in tree))
    try:
        bytearray(1 << 60)
    except MemoryError:
        print("MemoryError")


if __name__ == "__main__":
    main()
