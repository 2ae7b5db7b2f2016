/**
 * How the search looks for words: all of them must be there, guides come before references, and the words of other people
 * lead to ours. VitePress sends it to the browser as text, so the function uses nothing from outside.
 */
export const searchOptions = {
  fuzzy: 0.2,
  prefix: true,
  combineWith: "AND",
  boost: { title: 4, text: 2, titles: 1 },
  /** @param {string} id the address of a section */
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
    // Words such as <session> in the pages are no elements.
    markdown: { html: false },
    // The index of the search is one file, which is loaded when somebody searches.
    vite: { build: { chunkSizeWarningLimit: 4000 } },
    themeConfig: { nav, sidebar, search, outline: { level: [2, 3] } },
  };
}
