/** Reads configuration values from a snapshot that the pullet agent keeps up to date. */
module pullet {
    exports pullet;
}
