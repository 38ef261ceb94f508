/* host.c: loads a C++ plugin, lets it work in this and other threads, unloads it, again and again.
 *
 * Argument: the plugin's path. The host itself is C and knows nothing of the C++ library. */
#include "way.h"

#include <dlfcn.h>
#include <pthread.h>

static int (*plugin_work)(int);

static void *work(void *unused)
{
    expect(plugin_work(3) == 3, "WRONG: the plugin's work in a thread");
    return unused;
}

int main(int argc, char **argv)
{
    expect_ours();
    expect(argc > 1, "WRONG: no plugin named");
    for (int round = 0; round < 30; round++) {
        void *plugin = dlopen(argv[1], RTLD_NOW | (round % 2 == 0 ? RTLD_LOCAL : RTLD_GLOBAL));
        if (plugin == NULL)
            say_wrong(dlerror());
        *(void **)&plugin_work = dlsym(plugin, "plugin_work");
        void *(*plugin_gift)(void);
        *(void **)&plugin_gift = dlsym(plugin, "plugin_gift");
        expect(plugin_work != NULL && plugin_gift != NULL, "WRONG: dlsym");
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            expect(pthread_create(&threads[i], NULL, work, NULL) == 0, "WRONG: pthread_create");
        expect(plugin_work(5) == 5, "WRONG: the plugin's work");
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        unsigned char *gift = (unsigned char *)plugin_gift();
        memset(gift, 1, 123);
        dlclose(plugin);
        free(gift);
    }
    expect_content();
    say("the plugin worked");
    return 0;
}
