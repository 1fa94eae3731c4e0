/**
 * Reads configuration values from a snapshot that the pullet agent keeps up to date: see
 * {@link pullet.Config}. Pure Java 17, for Linux; the layout of the files is lib/FORMAT.md.
 */
package pullet;
