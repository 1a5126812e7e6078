// Units of packed decode: their weights and products with 64 values of a vector.
#include dots
#if FORMAT == Q4_K
#include units_q4_k
#else
#if FORMAT == Q6_K
#include units_q6_k
#else
#if WIDE
#else
#include weights
#endif
#include units_any
#endif
#endif
