/* settings.c: tells whether it runs with raised rights, and lives a little. Run set-uid with a setting that would
 * otherwise end the process: the environment of a stranger must not steer it. */
#include "way.h"

#include <sys/auxv.h>

int main(void)
{
    use_memory(100);
    expect_content();
    say(getauxval(AT_SECURE) != 0 ? "secure" : "ordinary");
    return 0;
}
