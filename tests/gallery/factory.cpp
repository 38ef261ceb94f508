/* factory.cpp: whatever is in a game comes from one template, from a list of one's own. Projectiles that hit nothing stay.
 * What must be named is who asked for them, not the template's line that all share. */
#include <cstdlib>
#include <cstring>
#include <utility>

#include <unistd.h>

template <typename T> class List
{
    T **items = nullptr;
    size_t count = 0, room = 0;

  public:
    void add(T *item)
    {
        if (count == room) {
            T **larger = new T *[room = room == 0 ? 4 : 2 * room];
            if (count > 0)
                std::memcpy(larger, items, count * sizeof *items);
            delete[] items;
            items = larger;
        }
        items[count++] = item;
    }
    T *take()
    {
        return count > 0 ? items[--count] : nullptr;
    }
    ~List()
    {
        delete[] items;
    }
};

class World
{
  public:
    template <typename T> static List<T> &all()
    {
        static List<T> list;
        return list;
    }
    template <typename T, typename... Arguments> T *spawn(Arguments &&...arguments)
    {
        T *made = new T{std::forward<Arguments>(arguments)...};
        all<T>().add(made);
        return made;
    }
    template <typename T> void end()
    {
        while (T *gone = all<T>().take())
            delete gone;
    }
};

static World world;

template <int Size> struct Thing {
    int number;
    char state[Size];
};
struct Player : Thing<200> {
};
struct Enemy : Thing<120> {
};
struct Tree : Thing<64> {
};
struct Cloud : Thing<48> {
};
struct Sound : Thing<300> {
};
struct Light : Thing<24> {
};
struct Door : Thing<32> {
};
struct Key : Thing<16> {
};
struct Coin : Thing<8> {
};
struct Effect : Thing<80> {
};
struct Message : Thing<160> {
};
struct Camera : Thing<512> {
};
struct Projectile : Thing<40> {
};

#define SYSTEM __attribute__((noinline)) static void
/* clang-format off */
SYSTEM join(int n) { world.spawn<Player>(n); }
SYSTEM attack(int n) { world.spawn<Enemy>(n); }
SYSTEM grow(int n) { world.spawn<Tree>(n); }
SYSTEM weather(int n) { world.spawn<Cloud>(n); }
SYSTEM play(int n) { world.spawn<Sound>(n); }
SYSTEM shine(int n) { world.spawn<Light>(n); }
SYSTEM build(int n) { world.spawn<Door>(n); }
SYSTEM lock(int n) { world.spawn<Key>(n); }
SYSTEM reward(int n) { world.spawn<Coin>(n); }
SYSTEM burn(int n) { world.spawn<Effect>(n); }
SYSTEM say(int n) { world.spawn<Message>(n); }
SYSTEM look(int n) { world.spawn<Camera>(n); }
SYSTEM shoot(int n) { world.spawn<Projectile>(n); } /* planted */
/* clang-format on */

__attribute__((noinline)) static void frame(int number)
{
    void (*const systems[])(int) = {join, attack, grow, weather, play, shine, build,
                                    lock, reward, burn, say,     look, shoot};
    for (auto *system : systems)
        for (int i = 0; i < 3; i++)
            system(number);
    world.end<Enemy>(), world.end<Tree>(), world.end<Cloud>(), world.end<Sound>(), world.end<Light>(),
        world.end<Door>();
    world.end<Key>(), world.end<Coin>(), world.end<Effect>(), world.end<Message>(), world.end<Camera>();
    world.end<Player>();
}

int main()
{
    for (int number = 0; number < 600; number++) {
        frame(number);
        usleep(500);
    }
    _exit(0);
}
