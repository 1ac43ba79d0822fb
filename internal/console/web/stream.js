// A worker that follows the events for all tabs of a browser with one stream: over plain
// HTTP, a browser has six connections to a host, and each stream takes one of them.
"use strict";

// What the visible tabs show, by their port: the last event they know, and which types they
// want.
const tabs = new Map();
let stream;

const receive = (message) => {
	const event = JSON.parse(message.data);
	for (const [port, tab] of tabs) {
		if (event.id > tab.after) {
			tab.after = event.id;
			if (tab.types.includes(event.type)) {
				port.postMessage({ event });
			}
		}
	}
};

const tell = (open) => {
	for (const port of tabs.keys()) {
		port.postMessage({ open });
	}
};

// Begin again whenever a tab opens or closes: someone else may have signed in.
// After a lost connection, the browser resumes automatically after the last event.
const restart = () => {
	stream?.close();
	stream = undefined;
	if (tabs.size === 0) {
		return;
	}
	const wanted = [...tabs.values()];
	const types = [...new Set(wanted.flatMap((tab) => tab.types))];
	const query = new URLSearchParams({ after: Math.min(...wanted.map((tab) => tab.after)), type: types.join() });
	stream = new EventSource(`/console/events/stream?${query}`);
	stream.addEventListener("open", () => tell(true));
	stream.addEventListener("error", () => tell(false));
	for (const type of types) {
		stream.addEventListener(type, receive);
	}
};

// A tab sends what it wants when it becomes visible, and null when it no longer is.
const join = (port) => {
	port.onmessage = ({ data: wants }) => {
		if (wants) {
			tabs.set(port, wants);
		} else if (!tabs.delete(port)) {
			return;
		}
		restart();
	};
};

if ("onconnect" in self) {
	self.onconnect = ({ ports }) => join(ports[0]);
} else {
	join(self); // a worker of one tab, in browsers without shared ones: they show one tab at a time
}
