/* fuzz_replay.c: the fuzzer's corpus as an ordinary test, without libFuzzer.
 *
 *     fuzz_replay CORPUS.tar.zst…      runs every input of the archives (tests/fuzz/corpus.sh makes them)
 *     fuzz_replay FILE…                runs one input each
 *     fuzz_replay --raw FILE OUT       a recording as input of mode 0
 *     fuzz_replay --sections FILE OUT  a recording as input of mode 1, its sections unpacked
 *
 * Each input is named before it runs: the last name is the one that failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "snapshot/read/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t *read_file(const char *path, size_t *length)
{
    FILE *in = fopen(path, "rb");
    if (in == NULL) {
        perror(path);
        exit(1);
    }
    size_t room = 1 << 16;
    uint8_t *bytes = malloc(room);
    *length = 0;
    for (size_t got; (got = fread(bytes + *length, 1, room - *length, in)) > 0;) {
        *length += got;
        if (*length == room)
            bytes = realloc(bytes, room *= 2);
    }
    fclose(in);
    return bytes;
}

static void run(const char *name, const uint8_t *bytes, size_t length)
{
    uint8_t *exact = malloc(length + (length == 0));
    memcpy(exact, bytes, length);
    printf("%s\n", name);
    fflush(stdout);
    LLVMFuzzerTestOneInput(exact, length);
    free(exact);
}

static void refuse(const char *path, const char *why)
{
    fprintf(stderr, "fuzz_replay: %s: %s\n", path, why);
    exit(1);
}

/* An archive's content: one zstd frame that says how long it is. */
static uint8_t *unpack(const char *path, size_t *length)
{
    size_t packed_length;
    uint8_t *packed = read_file(path, &packed_length);
    unsigned long long raw = ZSTD_getFrameContentSize(packed, packed_length);
    if (raw > (unsigned long long)1 << 30)
        refuse(path, "not a corpus that corpus.sh made");
    uint8_t *bytes = malloc(raw + 1);
    *length = ZSTD_decompress(bytes, raw, packed, packed_length);
    if (ZSTD_isError(*length))
        refuse(path, ZSTD_getErrorName(*length));
    free(packed);
    return bytes;
}

/* ustar: blocks of 512 bytes; a header with the name at 0, the length in octal at 124 and the type at 156, then the
 * content in whole blocks. An empty header is the end. */
static void run_archive(const char *path)
{
    enum { BLOCK = 512 };
    size_t length, count = 0;
    uint8_t *bytes = unpack(path, &length);
    for (size_t at = 0; at + BLOCK <= length && bytes[at] != '\0'; count++) {
        char name[101] = "";
        memcpy(name, bytes + at, 100);
        size_t size = strtoul((char *)bytes + at + 124, NULL, 8);
        if (bytes[at + 156] != '0' || size > length - at - BLOCK)
            refuse(path, "holds something that is no file");
        run(name, bytes + at + BLOCK, size);
        at += BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;
    }
    free(bytes);
    if (count < 10)
        refuse(path, "an empty corpus proves nothing");
    printf("%zu inputs\n", count);
}

static void sections(const char *path, FILE *out)
{
    struct ta__input input;
    struct ta__decoder decoder;
    struct ta__chunk_header header;
    struct ta__problem problem;
    fputc(1, out);
    if (ta__input_open(&input, path) != 0 || ta__decoder_open(&decoder, &input, (size_t)1 << 30) != 0)
        exit(1);
    for (uint64_t offset = 32; offset < input.length; offset += 32 + header.stored) {
        if (ta__input_chunk(&input, offset, &header, &problem) != 0)
            break;
        const uint8_t *payload = ta__decoder_payload(&decoder, &header);
        uint32_t kind = header.kind >= TA__KIND_END ? header.kind - TA__KIND_END + 200 : header.kind;
        if (payload == NULL || header.raw > 65535 || kind > 255)
            continue;
        const uint8_t head[4] = {(uint8_t)kind, (uint8_t)header.flags, (uint8_t)header.raw, (uint8_t)(header.raw >> 8)};
        fwrite(head, 1, 4, out);
        fwrite(payload, 1, header.raw, out);
    }
    ta__decoder_close(&decoder);
    ta__input_close(&input);
}

int main(int argc, char **argv)
{
    if (argc == 4 && argv[1][0] == '-') {
        FILE *out = fopen(argv[3], "wb");
        if (out == NULL)
            return 1;
        if (strcmp(argv[1], "--raw") == 0) {
            size_t length;
            uint8_t *bytes = read_file(argv[2], &length);
            fputc(0, out);
            fwrite(bytes, 1, length, out);
            free(bytes);
        } else {
            sections(argv[2], out);
        }
        return fclose(out) != 0;
    }
    for (int i = 1; i < argc; i++) {
        size_t length, name = strlen(argv[i]);
        if (name > 8 && strcmp(argv[i] + name - 8, ".tar.zst") == 0) {
            run_archive(argv[i]);
        } else {
            uint8_t *bytes = read_file(argv[i], &length);
            run(argv[i], bytes, length);
            free(bytes);
        }
    }
    return argc < 2; /* nothing to run proves nothing */
}
