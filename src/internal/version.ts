/** The version of this package. It is a constant because a bundler may leave out package.json; a test compares the two. */
export const VERSION = "0.2.0";
