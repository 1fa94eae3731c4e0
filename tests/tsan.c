/*
 * What ThreadSanitizer is not to report. It is part of each program: a file of its own would have
 * to be readable by every user that a test runs one as, in a checkout that may be private.
 */
const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
	/* libzmq is not built with ThreadSanitizer: its own synchronisation cannot be seen, so what
	 * it does to memory is left out. */
	return "called_from_lib:libzmq.so.5\n"
	       "called_from_lib:libsodium.so.23\n"
	       /* libzmq's reads of a socket are seen, as recv() is the program's own (peer_guard),
		* and its close of it is not (called_from_lib): the next one to have the number of
		* that descriptor seems to race with it. */
	       "race:interceptor_recvfrom\n"
	       /* libcurl closes a descriptor before it tells the loop, whose epoll_ctl() on the
		* number may come when another thread has a new one of it: ENOENT, and no more. */
	       "race:^on_socket$\n"
	       /* An agent that is to end does not wait for a check for ever; when its thread ends
		* at that very moment, nobody joins it. */
	       "thread:^worker_start_behind$\n";
}
