#include "counter.h"

int main() { return tandem::Program().actor<Counter>("counter").run(); }
