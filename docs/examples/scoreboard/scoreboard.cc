#include "scoreboard.h"

int main() { return scoreboard::program().run(); }
