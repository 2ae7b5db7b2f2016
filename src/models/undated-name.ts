// A model goes on under a dated or moving name (`-2025-08-07`, `-20250929`, `@20250929`, `-0613`, `-latest`); any other
// ending is another model with a price and a context of its own.
const DATE = /[-@](\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|latest)$/;

/** A model's name without the date that its provider may put at the end. */
export function undatedName(name: string): string {
  return name.replace(DATE, "");
}

/** Whether a text names a model of a provider. */
export function isModelName(name: string): boolean {
  return /^[^/]+\/./.test(name);
}
