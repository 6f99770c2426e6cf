from __future__ import annotations

import base64
import binascii
import http.client
import json
import operator
import random
import re
import secrets
import select
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date as _Date, datetime, timedelta, timezone
from decimal import Decimal as _Decimal
from typing import Any, Generic, Literal, NoReturn, Protocol, TypeVar, overload
