// More calls at once than a session takes.

import { Client, Group } from "./clients/message_groups.js";

const client = new Client(process.argv[2] ?? "");
await Promise.all(Array.from({ length: 10 }, () => client.addPost(new Group("rust"), "hello")));
