/* small_file.c: see small_file.h. */
#include "base/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"

size_t ta__small_file(const char *path, char *text, size_t room)
{
    int saved_errno = errno;
    size_t length = 0;
    ssize_t got = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    while (file >= 0 && length < room - 1 && (got = read(file, text + length, room - 1 - length)) > 0)
        length += (size_t)got;
    if (file >= 0)
        close(file);
    text[length] = '\0';
    errno = saved_errno;
    return length;
}

size_t ta__small_file_of(int64_t process, const char *name, char *text, size_t room)
{
    char path[64] = "/proc/";
    char *at = ta__put_decimal(path + strlen(path), (uint64_t)process);
    *at++ = '/';
    strncpy(at, name, (size_t)(path + sizeof path - 1 - at));
    return ta__small_file(path, text, room);
}

size_t ta__link_text(const char *path, char *text, size_t room)
{
    int saved_errno = errno;
    ssize_t length = readlink(path, text, room - 1);
    text[length > 0 ? length : 0] = '\0';
    errno = saved_errno;
    return length > 0 ? (size_t)length : 0;
}

uint64_t ta__decimal_at(const char *text)
{
    uint64_t number = 0;
    text += strspn(text, " \t");
    for (; *text >= '0' && *text <= '9'; text++)
        number = number * 10 + (uint64_t)(*text - '0');
    return number;
}

const char *ta__behind(const char *text, const char *label)
{
    const char *at = strstr(text, label);
    return at == NULL ? NULL : at + strlen(label);
}
