"""Allocates in the interpreter, in libcrypto and in sqlite3; holds some of each at the end."""
import hashlib
import sqlite3
import ssl

context = ssl.create_default_context()
digests = [hashlib.sha256(str(i).encode()) for i in range(500)]
database = sqlite3.connect(":memory:")
database.execute("create table t(a integer primary key, b text)")
database.executemany("insert into t(b) values(?)", ((digests[i % 500].hexdigest() + str(i),) for i in range(5000)))
database.execute("create index i on t(b)")
numbers = [str(i) for i in range(50000)]
print(database.execute("select count(*) from t").fetchone()[0], len(numbers))
