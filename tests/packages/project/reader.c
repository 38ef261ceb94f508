/* reader.c: reads a recording. */
#include <stdio.h>
#include <tracealloc/export.h>

int main(int argc, char **argv)
{
    struct ta_snapshot *snapshot = ta_snapshot_load(argc > 1 ? argv[1] : "");
    if (snapshot == NULL || ta_snapshot_export_text(snapshot, 3, ta_write_to_stream, stdout) != 0) {
        puts(ta_error_text());
        return 1;
    }
    ta_snapshot_free(snapshot);
    return 0;
}
