// A server of an app with compression, which passes requests on: the usual one of a first app with Express.
// The arguments are the port to listen on and the port of Bellhop.
"use strict";

const http = require("node:http");
const compression = require("compression");
const express = require("express");

const [port, bellhop] = process.argv.slice(2).map(Number);
const app = express();
app.use(compression());
app.use((request, response) => {
  const { method, originalUrl: path, headers } = request;
  const onward = http.request({ host: "127.0.0.1", port: bellhop, method, path, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  request.pipe(onward);
});
app.listen(port, "127.0.0.1");
