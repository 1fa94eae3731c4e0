/*
 * What lib/trigger.c takes from <stdatomic.h>, mapped to relacy, so that relacy runs the very code
 * and its very memory orders. Found in place of the system's by -I.
 *
 * What surprises: relacy wants to know the place of each access, and C does not tell it; it is taken
 * from the macro that stands for the call.
 */
#ifndef MODEL_STDATOMIC_H
#define MODEL_STDATOMIC_H

#define memory_order_relaxed rl::mo_relaxed
#define memory_order_acquire rl::mo_acquire
#define memory_order_release rl::mo_release
#define memory_order_acq_rel rl::mo_acq_rel

#define atomic_init(p, value) (p)->store(value, rl::mo_relaxed, $)
#define atomic_load_explicit(p, order) (p)->load(order, $)
#define atomic_exchange_explicit(p, value, order) (p)->exchange(value, order, $)
#define atomic_fetch_and_explicit(p, value, order) (p)->fetch_and(value, order, $)
#define atomic_compare_exchange_weak_explicit(p, old, value, order, failure) \
	(p)->compare_exchange(rl::bool_t<true>(), *(old), value, order, failure, $)

/* A plain variable, each access of which is checked for a race. */
template <typename T> class plain {
	rl::var<T> v;

public:
	operator T() const
	{
		return const_cast<rl::var<T> &>(v)($);
	}
	T operator=(T value)
	{
		v($) = value;
		return value;
	}
	T operator=(const plain<T> &other)
	{
		return *this = (T)other;
	}
};

#endif
