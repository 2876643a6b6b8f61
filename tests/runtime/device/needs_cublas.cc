// Stands for NVIDIA's library, and for a module that needs it.
extern "C" int tandem_test_nothing() { return 0; }
