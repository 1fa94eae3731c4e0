/*
 * The connections of an evhttp: how many there are at a time, and how long each may take.
 *
 * evhttp knows no bound for clients, nor one for how long a request or an answer may take
 * altogether, nor one for what a client sends ahead. So each connection is in a list here from the
 * turn of the loop on in which it was accepted, and is in one of three phases: READING, a request
 * is awaited or comes in; THINKING, the handler has it; WRITING, the answer goes out. Who takes too
 * long over the first or the last is dropped (the numbers are in httpd.h).
 *
 * Threads: the loop's. Ownership: a client is freed here, when its connection ends; until then its
 * evhttp_connection is good. Bounds: clients_limit(); CLIENTS_INPUT bytes and one read of each
 * client that nobody has looked at yet. Wake-ups: none while nobody is connected, nor for those
 * that are THINKING.
 */
#ifndef PULLET_CLIENTS_H
#define PULLET_CLIENTS_H

#include "loop.h"

struct evconnlistener;
struct evhttp;
struct evhttp_connection;
struct evhttp_request;

#define CLIENTS_INPUT 32768 /* more than the largest request, and what one read brings */

struct clients;
struct client;

/* Watches over all that http accepts from now on. NULL with errno set. */
struct clients *clients_new(struct loop *l, struct evhttp *http, size_t max);
/* After evhttp_free(), which ends the connections. Accepts NULL. */
void clients_free(struct clients *s);
void clients_limit(struct clients *s, size_t max);
/* http accepts from this listener, and from no other one any more. */
void clients_accept(struct clients *s, struct evconnlistener *listener);
/* Bytes of all the answers that are not read yet. */
size_t clients_queued(const struct clients *s);

/* Whose request it is. NULL: of a connection that there was no memory for here. */
struct client *clients_find(const struct clients *s, struct evhttp_request *request);
/* A request of it is with the handler; gone is called when the connection ends before
 * client_writes(), by whomsoever. */
void client_thinks(struct client *c, void (*gone)(void *arg), void *arg);
/* An answer was given to evhttp, which has len bytes beside its headers. */
void client_writes(struct client *c, size_t len);
/* All of that is sent: the next request may come. */
void client_reads(struct client *c);
/* Ends the connection; gone is called. */
void client_drop(struct client *c);
int client_fd(const struct client *c);

#endif
