/**
 * The options of the search: all words must occur, guides rank before references, and terms of other projects lead to
 * the glossary. VitePress sends the function to the browser as text, so it must not use anything outside itself.
 */
export const searchOptions = {
  fuzzy: 0.2,
  prefix: true,
  combineWith: "AND",
  boost: { title: 4, text: 2, titles: 1 },
  /** @param {string} id the URL of a section */
  boostDocument: (id) => (id.startsWith("/docs/glossary.html#words-") ? 10 : /^\/docs\/(?!decisions)/.test(id) ? 3 : 1),
};

/**
 * The configuration of VitePress.
 * @param {{ description: string, sidebar: readonly object[], outDir: string }} site
 */
export function siteConfig({ description, sidebar, outDir }) {
  const nav = [
    { text: "Documentation", link: "/docs/" },
    { text: "API", link: "/api/skein" },
    { text: "HTTP", link: "/http" },
    { text: "Examples", link: "/examples/" },
  ];
  const search = { provider: "local", options: { miniSearch: { searchOptions } } };
  return {
    title: "Skein",
    description,
    outDir,
    // Text such as <session> in the pages is not HTML.
    markdown: { html: false },
    // The search index is one file, which is loaded on the first search.
    vite: { build: { chunkSizeWarningLimit: 4000 } },
    themeConfig: { nav, sidebar, search, outline: { level: [2, 3] } },
  };
}
