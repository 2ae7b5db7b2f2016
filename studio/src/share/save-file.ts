/** How long the object URL is kept; some browsers read it only after the click. */
const KEEP_MS = 60_000;

/** Lets the browser download a file. */
export function saveFile(file: Blob, name: string): void {
  const address = URL.createObjectURL(file);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), KEEP_MS);
}
