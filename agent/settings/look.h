/*
 * Whether the files, directories and programs that the agent's configuration names are there, and
 * can be used by who asks. No server is contacted, and nothing is run.
 *
 * Private to agent/settings. Threads: one. What is missing is no error of the configuration: it is
 * said to the loader's `look`, "file:line:column: KEY: what is wrong: what to do", where there is
 * one.
 */
#ifndef PULLET_SETTINGS_LOOK_H
#define PULLET_SETTINGS_LOOK_H

#include "document/document.h"
#include "settings/loader.h"

/* What a path leads to. */
enum look { LOOK_NOT, LOOK_FILE, LOOK_FOLDER, LOOK_OUTPUT };

/* Looks at a path that a key says; the node is its value. secret: the path is not shown, it may be
 * the secret itself by mistake. */
void look_at(struct loader *l, const struct node *n, const char *key, enum look what, bool secret,
	const char *path);
/* The same of a program, the first word of a command. */
void look_at_program(struct loader *l, const struct node *n, const char *key, const char *path);
/* Of the folder of a server of kind file. */
void look_at_folder(struct loader *l, const struct node *n, const char *path);
/* Compiles the schema of a config; n: its value. Only where all is looked at. */
void look_at_schema(
	struct loader *l, const struct node *n, const char *schema, const char *schema_dir);

#endif
