// The session that somebody wanted to see is remembered until they have signed in.
if (location.hash.length > 1) localStorage.setItem("wanted", location.hash.slice(1));
