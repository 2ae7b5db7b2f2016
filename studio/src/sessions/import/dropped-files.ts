/** The most files that one drop brings; a folder may hold anything. */
const FILES_MAX = 1000;

/** The files that may be sessions among what was dropped, those in folders included. */
export async function droppedFiles(transfer: DataTransfer): Promise<File[]> {
  // What was dropped is gone after the first wait, so that all of it is asked for at once.
  const items = [...transfer.items].map((item) => item.webkitGetAsEntry() ?? item.getAsFile());
  const files: File[] = [];
  for (const item of items) {
    if (item instanceof File) files.push(item);
    else if (item !== null) await gather(item, files);
  }
  return files;
}

async function gather(entry: FileSystemEntry, files: File[]): Promise<void> {
  if (files.length >= FILES_MAX) return;
  if (entry.isFile) {
    if (/\.jsonl?$/.test(entry.name)) files.push(await fileOf(entry as FileSystemFileEntry));
    return;
  }
  for (const inside of await listed(entry as FileSystemDirectoryEntry)) await gather(inside, files);
}

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

/** All that is in a folder; a browser gives it in parts. */
async function listed(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return all;
    all.push(...some);
  }
}
