// Reads a session of a store from both ends, entry by entry, and prints how many entries and characters it was given.
// node read-large.mjs <url> <session>
import { openStore } from "skein";

const [url = "", id = ""] = process.argv.slice(2);
const store = await openStore(url);
for (const reverse of [false, true]) {
  let [entries, characters] = [0, 0];
  for await (const entry of store.read(id, { reverse })) {
    entries += 1;
    if (entry.type === "message") characters += String(entry.message.content).length;
  }
  console.log(`${entries} ${characters}`);
}
const texts = await store.readJson(id, { limit: 1000, charactersMax: 1 });
console.log(`${texts.length}`);
await store.close();
