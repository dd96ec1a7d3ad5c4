# SPDX-License-Identifier: Apache-2.0
# An image of rebat: the scheduler process of docker-compose.yml, and the embedded engine.
FROM python:3.12-slim

WORKDIR /opt/rebat
COPY pyproject.toml README.md LICENSE ./
COPY scripts/index_page.py ./scripts/
COPY schedulers ./schedulers
COPY workloads ./workloads
COPY failure_events ./failure_events
COPY platforms ./platforms
COPY campaigns ./campaigns
RUN pip install --no-cache-dir .

# The toy example checks the image and compiles the kernels. The last command compiles the loop.
RUN rebat toy --out /tmp/toy && rm -r /tmp/toy && rebat warmup

WORKDIR /project
EXPOSE 28000
ENTRYPOINT ["rebat"]
CMD ["--help"]
