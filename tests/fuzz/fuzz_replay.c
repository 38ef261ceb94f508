/* fuzz_replay.c: the fuzzer's corpus as an ordinary test, without libFuzzer.
 *
 *     fuzz_replay DIR…                 runs every file of the folders
 *     fuzz_replay --raw FILE OUT       a recording as input of mode 0
 *     fuzz_replay --sections FILE OUT  a recording as input of mode 1, its sections unpacked */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/decode.h"

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

static int run_folder(const char *folder)
{
    int count = 0;
    DIR *entries = opendir(folder);
    if (entries == NULL) {
        perror(folder);
        exit(1);
    }
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        char path[4096];
        size_t length;
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        uint8_t *bytes = read_file(path, &length);
        uint8_t *exact = malloc(length + (length == 0));
        memcpy(exact, bytes, length);
        LLVMFuzzerTestOneInput(exact, length);
        free(exact);
        free(bytes);
        count++;
    }
    closedir(entries);
    return count;
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
    int count = 0;
    for (int i = 1; i < argc; i++)
        count += run_folder(argv[i]);
    printf("%d inputs\n", count);
    return count < 10; /* an empty corpus proves nothing */
}
