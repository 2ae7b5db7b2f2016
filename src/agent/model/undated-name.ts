// These suffixes name a version of the same model (`-2025-08-07`, `-20250929`, `@20250929`, `-0613`, `-latest`). Any other
// suffix names another model, with another price and context window.
const DATE = /[-@](\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|latest)$/;

/** A model's name without the provider's date suffix. */
export function undatedName(name: string): string {
  return name.replace(DATE, "");
}

/** Whether a text has the form `provider/model`. */
export function isModelName(name: string): boolean {
  return /^[^/]+\/./.test(name);
}
