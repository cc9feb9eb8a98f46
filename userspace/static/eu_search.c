// SPDX-License-Identifier: Apache-2.0
/*
 * Linked by `make STATIC=1` only. Debian's libelf.a and libdw.a (elfutils 0.191 and later) call
 * search-tree helpers that live in an internal library of elfutils which is not shipped; in the
 * shared libraries they are inside. These are the same few functions over tsearch(3). Of the tree
 * only its first member, the root, is known here, and one lock serves all trees.
 */
#include <pthread.h>
#include <search.h>
#include <stddef.h>

struct eu_tree {
	void *root;
};

typedef int eu_compare(const void *, const void *);

static pthread_mutex_t eu_lock = PTHREAD_MUTEX_INITIALIZER;

void *eu_tsearch(const void *key, struct eu_tree *tree, eu_compare *compare);
void *eu_tfind(const void *key, struct eu_tree *tree, eu_compare *compare);
void *eu_tdelete(const void *key, struct eu_tree *tree, eu_compare *compare);
void eu_tdestroy(struct eu_tree *tree, void (*free_node)(void *));
void eu_search_tree_init(struct eu_tree *tree);
void eu_search_tree_fini(struct eu_tree *tree, void (*free_node)(void *));

void *eu_tsearch(const void *key, struct eu_tree *tree, eu_compare *compare)
{
	void *node;

	pthread_mutex_lock(&eu_lock);
	node = tsearch(key, &tree->root, compare);
	pthread_mutex_unlock(&eu_lock);
	return node;
}

void *eu_tfind(const void *key, struct eu_tree *tree, eu_compare *compare)
{
	void *node;

	pthread_mutex_lock(&eu_lock);
	node = tfind(key, &tree->root, compare);
	pthread_mutex_unlock(&eu_lock);
	return node;
}

void *eu_tdelete(const void *key, struct eu_tree *tree, eu_compare *compare)
{
	void *node;

	pthread_mutex_lock(&eu_lock);
	node = tdelete(key, &tree->root, compare);
	pthread_mutex_unlock(&eu_lock);
	return node;
}

void eu_tdestroy(struct eu_tree *tree, void (*free_node)(void *))
{
	void *root;

	/* A node may hold trees of its own, which free_node destroys: not under the lock. */
	pthread_mutex_lock(&eu_lock);
	root = tree->root;
	tree->root = NULL;
	pthread_mutex_unlock(&eu_lock);
	tdestroy(root, free_node);
}

void eu_search_tree_init(struct eu_tree *tree)
{
	tree->root = NULL;
}

void eu_search_tree_fini(struct eu_tree *tree, void (*free_node)(void *))
{
	eu_tdestroy(tree, free_node);
}
