import { openManager } from "skein";
import { applyRetention } from "skein/lifecycle";

const days = Number(process.env.KEEP_DAYS ?? 30);
const { store } = await openManager({ store: process.env.STORE ?? "sqlite:./chats.db" });
const olderThan = new Date(Date.now() - days * 24 * 60 * 60 * 1000);
const { erased } = await applyRetention(store, { eraseAfter: { olderThan } });
console.log(`Erased ${erased.length} chats.`);
await store.close();
