/* test_end_text.c: how a process ended, in a word: all signals have the name that libc has for them. */
#include "snapshot/triggers/end_text.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <unity.h>

void setUp(void)
{
}

void tearDown(void)
{
}

static void test_signals_have_libcs_names(void)
{
    for (int number = 1; number < 64; number++) {
        char text[16], expected[16];
        ta__signal_text(text, number);
        if (sigabbrev_np(number) != NULL)
            snprintf(expected, sizeof expected, "SIG%s", sigabbrev_np(number));
        else
            snprintf(expected, sizeof expected, "SIG%d", number);
        TEST_ASSERT_EQUAL_STRING(expected, text);
    }
}

static const char *text_of(int end)
{
    static char text[16];
    ta__end_text(text, end);
    return text;
}

static void test_what_wait_tells(void)
{
    TEST_ASSERT_EQUAL_STRING("", text_of(-1));
    TEST_ASSERT_EQUAL_STRING("0", text_of(0));
    TEST_ASSERT_EQUAL_STRING("3", text_of(3 << 8));
    TEST_ASSERT_EQUAL_STRING("255", text_of(255 << 8));
    TEST_ASSERT_EQUAL_STRING("SIGTERM", text_of(SIGTERM));
    TEST_ASSERT_EQUAL_STRING("SIGABRT", text_of(SIGABRT | 0x80)); /* with a core */
    pid_t child = fork();
    int status;
    if (child == 0) {
        raise(SIGKILL);
        _exit(1);
    }
    TEST_ASSERT_EQUAL(child, waitpid(child, &status, 0));
    TEST_ASSERT_EQUAL_STRING("SIGKILL", text_of(status));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_signals_have_libcs_names);
    RUN_TEST(test_what_wait_tells);
    return UNITY_END();
}
