import './style.css';
import { Host } from '../ui/host.js';
import { registerToolkit } from '../ui/toolkit.js';
import { App } from './app.js';

registerToolkit();
const host = new Host<'try'>();
void host.start().then((init) => new App(host, document.getElementById('app') ?? document.body, init));
