# Install.cmake: what `cmake --install` lays down: libraries, headers, the program, CMake package, pkg-config, man pages.
