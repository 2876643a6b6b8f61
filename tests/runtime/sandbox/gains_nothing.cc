// Preloaded by the attack run_setuid_program. The loader leaves it out of a program that gains
// rights; any other ends here, with the exit code of an attack that was refused.
#include <unistd.h>

[[gnu::constructor]] static void gains_nothing() { _exit(1); }
