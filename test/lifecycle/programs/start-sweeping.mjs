// Starts the timer of a manager and does nothing else, so that it exits immediately unless the timer keeps it alive.
import { SessionManager } from "skein";
import { openMemoryStore } from "skein/memory";

const manager = new SessionManager({ store: openMemoryStore() });
manager.start();
console.log("started");
