// Starts the timer of a manager and does nothing else, so that it ends at once unless the timer keeps it alive.
import { SessionManager } from "../../../dist/lifecycle/index.js";
import { openMemoryStore } from "../../../dist/stores/memory/index.js";

const manager = new SessionManager({ store: openMemoryStore() });
manager.start();
console.log("started");
